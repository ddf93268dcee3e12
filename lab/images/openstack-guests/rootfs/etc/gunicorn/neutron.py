# How gunicorn serves neutron.
wsgi_app = "neutron.wsgi.api:application"
bind = "0.0.0.0:9696"
threads = 8
# Loading the application alone takes long on a busy machine.
timeout = 300
worker_tmp_dir = "/dev/shm"
