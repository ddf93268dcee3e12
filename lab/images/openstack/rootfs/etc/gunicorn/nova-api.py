# How gunicorn serves nova's API: in a file, because nova reads the command line as its own.
wsgi_app = "nova.wsgi.osapi_compute:application"
bind = "0.0.0.0:8774"
threads = 8
# A cell whose database does not answer holds a request for 60 seconds; loading takes long as well.
timeout = 300
worker_tmp_dir = "/dev/shm"
