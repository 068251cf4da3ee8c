/*
 * soak: a random OpenCL program that checks itself. See soak.h for how.
 *
 *	soak [--ops N] [--threads N] [--queues N] [--skip LIST] [--light] [--list] [--trace] SEED
 *
 * Prints one line that depends on nothing but the arguments. Exit status: 0, 1 when something was wrong (said on
 * stderr), 3 when it hangs.
 */
#include "soak.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { LIMIT = 60 /* seconds; programs take less than one */ };

static struct options options;
static struct style style;
static struct thread threads[THREADS_MAX];
static atomic_bool finished;

/* A hang is a failure, and says where. */
static void *watch(void *arg)
{
	(void)arg;
	for (int i = 0; i < LIMIT * 10 && !atomic_load(&finished); i++)
		pause_us(100000);
	if (atomic_load(&finished))
		return NULL;
	for (unsigned i = 0; i < options.threads; i++)
		fprintf(stderr, "soak: hangs: thread %u is in op %u\n", i, atomic_load(&threads[i].op));
	fflush(stderr);
	_exit(3);
}

/*
 * fail() in any thread ends the program while others work: what exit would run, that of the libraries too, must not.
 * What it said went to stderr unbuffered, and nothing is on stdout yet.
 */
static void leave(void)
{
	if (!atomic_load(&finished))
		_exit(EXIT_FAILURE);
}

static void *work(void *arg)
{
	struct thread *t = arg;
	for (unsigned i = 0; i < options.ops; i++) {
		struct op op = op_make(&options, t->index * options.ops + i);
		if (!options.skip[op.number])
			op_run(t, &op);
	}
	thread_close(t);
	return NULL;
}

static unsigned list_all(bool print)
{
	unsigned count = 0;
	for (unsigned i = 0; i < options.ops * options.threads; i++) {
		if (options.skip[i])
			continue;
		count++;
		struct op op = op_make(&options, i);
		if (print)
			op_print(&op);
	}
	return count;
}

/* Some threads have a context of their own. */
static void threads_open(struct world *common)
{
	for (unsigned i = 0; i < options.threads; i++) {
		struct thread *t = &threads[i];
		*t = (struct thread){.index = i, .options = &options, .style = &style, .world = common};
		t->own = mix(options.seed + 77 * i) % 3 == 0;
		if (t->own) {
			t->world = allocate(sizeof *t->world);
			*t->world = (struct world){.profiling = style.profiling};
			world_open(t->world);
		}
		thread_open(t);
	}
}

static void run_all(void)
{
	for (unsigned i = 0; i < options.threads; i++)
		if (pthread_create(&threads[i].id, NULL, work, &threads[i]) != 0)
			fail("soak: cannot start a thread");
	for (unsigned i = 0; i < options.threads; i++)
		pthread_join(threads[i].id, NULL);
}

static uint64_t close_all(struct world *common)
{
	uint64_t hash = CHECKSUM_START;
	mailbox_empty();
	callbacks_wait();
	for (unsigned i = 0; i < options.threads; i++) {
		struct thread *t = &threads[i];
		failed_release(t);
		if (t->own) {
			world_close(t->world);
			free(t->world);
		}
		hash = checksum(hash, &t->hash, sizeof t->hash);
	}
	world_close(common);
	for (unsigned i = 0; i < options.threads; i++)
		hostmemory_free(&threads[i]);
	return hash;
}

int main(int argc, char **argv)
{
	options = options_read(argc, argv);
	unsigned count = list_all(options.list);
	if (!options.list) {
		pthread_t watchdog;
		struct world common = {0};
		style = style_of(&options, gpu_device());
		common.profiling = style.profiling;
		world_open(&common);
		threads_open(&common);
		if (pthread_create(&watchdog, NULL, watch, NULL) != 0)
			fail("soak: cannot start a thread");
		if (atexit(leave) != 0) /* as late as this, to be the first that is called */
			fail("soak: cannot register for the end");
		run_all();
		uint64_t hash = close_all(&common);
		atomic_store(&finished, true);
		printf("soak seed=%llu operations=%u checksum=%016llx\n", (unsigned long long)options.seed, count, (unsigned long long)hash);
	}
	free(options.skip);
	if (fflush(stdout) != 0)
		fail("soak: cannot write the result: %s", strerror(errno));
	return EXIT_SUCCESS;
}
