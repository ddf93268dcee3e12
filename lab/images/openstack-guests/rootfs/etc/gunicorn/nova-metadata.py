# How gunicorn serves nova's metadata API.
wsgi_app = "nova.wsgi.metadata:application"
bind = "0.0.0.0:8775"
threads = 4
# Loading the application alone takes long on a busy machine.
timeout = 300
worker_tmp_dir = "/dev/shm"
