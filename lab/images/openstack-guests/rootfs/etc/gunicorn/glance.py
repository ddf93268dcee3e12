# How gunicorn serves glance.
wsgi_app = "glance.wsgi.api:application"
bind = "0.0.0.0:9292"
threads = 4
# Loading the application alone takes long on a busy machine.
timeout = 300
worker_tmp_dir = "/dev/shm"
