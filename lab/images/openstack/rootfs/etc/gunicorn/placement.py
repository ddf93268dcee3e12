# How gunicorn serves placement.
wsgi_app = "placement.wsgi.api:application"
bind = "0.0.0.0:8778"
threads = 4
# Loading the application alone takes long on a busy machine.
timeout = 300
worker_tmp_dir = "/dev/shm"
