# How gunicorn serves Keystone: in a file, because Keystone reads the command line as its own.
wsgi_app = "keystone.wsgi.api:application"
bind = "0.0.0.0:5000"
threads = 8
# Loading the application alone takes long on a busy machine.
timeout = 300
worker_tmp_dir = "/dev/shm"
