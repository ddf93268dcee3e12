# How gunicorn serves Keystone: in a file, because Keystone reads the command line as its own.
wsgi_app = "keystone.wsgi.api:application"
bind = "0.0.0.0:5000"
workers = 2
worker_tmp_dir = "/dev/shm"
