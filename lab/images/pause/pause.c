/* The process that holds a pod's namespaces open: it waits, and reaps what is left to it. */
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

static void leave(int signal_number) {
	(void)signal_number;
	_exit(0);
}

static void reap(int signal_number) {
	(void)signal_number;
	while (waitpid(-1, NULL, WNOHANG) > 0) {
	}
}

int main(void) {
	struct sigaction on_child = {.sa_handler = reap, .sa_flags = SA_NOCLDSTOP};
	struct sigaction on_end = {.sa_handler = leave};

	if (sigaction(SIGCHLD, &on_child, NULL) || sigaction(SIGTERM, &on_end, NULL) ||
	    sigaction(SIGINT, &on_end, NULL)) {
		return 1;
	}
	for (;;) {
		pause();
	}
}
