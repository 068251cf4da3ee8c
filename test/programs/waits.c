/*
 * waits: makes each call that waits, and then counts in how many rounds something does not hold that should: the event's status
 * and times, its callback, the contents of memory, the counts of references. Threads of its own keep the processors busy, so that
 * what comes late shows. A driver may be wrong in some of this; with gpumemtop, no more of it may be.
 *
 *	waits [ROUNDS] [LOAD]     LOAD: busy threads
 */
#define CL_TARGET_OPENCL_VERSION 200
#define CL_USE_DEPRECATED_OPENCL_1_2_APIS
#include "common.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

enum { ITEMS = 1024, BYTES = ITEMS * 4, OTHERS = 6 };
enum looked { STATUS, TIMES, CALLBACK, CONTENTS, REFERENCES, LOOKED };
static const char *const words[LOOKED] = {"status", "times", "callback", "contents", "references"};

static const char *const source = "__kernel void add(__global const uint *from, __global uint *to) {\n"
				  "	to[get_global_id(0)] = from[get_global_id(0)] + 1u;\n"
				  "}\n";

SITE(create_between)

struct round {
	struct gpu gpu; /* with a queue of this round */
	cl_kernel kernel;
	cl_mem in, out;
	cl_event event;      /* of the last command before the wait */
	cl_uint host[ITEMS]; /* what a command reads to, or writes from */
	const cl_uint *seen; /* what the program then finds; NULL: nothing to look at */
	void *shared;        /* NULL: no shared memory */
	_Atomic int called[2]; /* in rounds of even and odd numbers: a late one counts in its own */
	size_t number;         /* of the round */
	bool profiled;
};

static _Atomic int *called(struct round *r)
{
	return &r->called[r->number % 2];
}

static void CL_CALLBACK call(cl_event event, cl_int status, void *data)
{
	(void)event, (void)status;
	atomic_fetch_add((_Atomic int *)data, 1);
}

static void CL_CALLBACK ended(cl_mem memory, void *data)
{
	(void)memory;
	atomic_fetch_add((_Atomic int *)data, 1);
}

static void follow(struct round *r)
{
	CHECK(clSetEventCallback(r->event, CL_COMPLETE, call, called(r)));
}

static void add(struct round *r, cl_mem from, cl_mem to, cl_event *event)
{
	const size_t items = ITEMS, one = 1;
	gpu_arguments(r->kernel, sizeof from, &from, sizeof to, &to, (size_t)0);
	CHECK(clEnqueueNDRangeKernel(r->gpu.queue, r->kernel, 1, NULL, &items, &one, 0, NULL, event));
}

static void run(struct round *r)
{
	add(r, r->in, r->out, &r->event);
	follow(r);
}

static void finish(struct round *r)
{
	CHECK(clFinish(r->gpu.queue));
}

static void read_later(struct round *r)
{
	add(r, r->in, r->out, NULL);
	CHECK(clEnqueueReadBuffer(r->gpu.queue, r->out, CL_FALSE, 0, BYTES, r->host, 0, NULL, &r->event));
	follow(r);
	r->seen = r->host;
}

static cl_command_queue other_queue(const struct round *r)
{
	cl_int status;
	cl_command_queue queue = clCreateCommandQueue(r->gpu.context, r->gpu.device, 0, &status);
	CHECK(status);
	return queue;
}

static void kernel_finish(struct round *r)
{
	run(r);
	finish(r);
}

static void flush_finish(struct round *r)
{
	run(r);
	CHECK(clFlush(r->gpu.queue));
	finish(r);
}

static void read_finish(struct round *r)
{
	read_later(r);
	finish(r);
}

/* The host's memory is the program's again: what is written there then must not reach the device. */
static void write_finish(struct round *r)
{
	for (cl_uint i = 0; i < ITEMS; i++)
		r->host[i] = i + 1;
	CHECK(clEnqueueWriteBuffer(r->gpu.queue, r->out, CL_FALSE, 0, BYTES, r->host, 0, NULL, &r->event));
	follow(r);
	finish(r);
	for (cl_uint i = 0; i < ITEMS; i++)
		r->host[i] = 0;
}

static void copy_finish(struct round *r)
{
	cl_mem between = create_between(&r->gpu, BYTES);
	add(r, r->in, between, NULL);
	CHECK(clEnqueueCopyBuffer(r->gpu.queue, between, r->out, 0, 0, BYTES, 0, NULL, &r->event));
	follow(r);
	finish(r);
	CHECK(clReleaseMemObject(between));
}

static void map(struct round *r, cl_bool blocking)
{
	cl_int status;
	add(r, r->in, r->out, NULL);
	r->seen = clEnqueueMapBuffer(r->gpu.queue, r->out, blocking, CL_MAP_READ, 0, BYTES, 0, NULL, &r->event, &status);
	CHECK(status);
	if (!blocking)
		follow(r);
}

static void map_finish(struct round *r)
{
	map(r, CL_FALSE);
	finish(r);
}

static void blocking_map(struct round *r)
{
	map(r, CL_TRUE);
}

static void marker_finish(struct round *r)
{
	add(r, r->in, r->out, NULL);
	CHECK(clEnqueueMarkerWithWaitList(r->gpu.queue, 0, NULL, &r->event));
	follow(r);
	finish(r);
}

static void barrier_finish(struct round *r)
{
	add(r, r->in, r->out, NULL);
	CHECK(clEnqueueBarrierWithWaitList(r->gpu.queue, 0, NULL, &r->event));
	follow(r);
	finish(r);
}

static void blocking_read(struct round *r)
{
	add(r, r->in, r->out, NULL);
	CHECK(clEnqueueReadBuffer(r->gpu.queue, r->out, CL_TRUE, 0, BYTES, r->host, 0, NULL, &r->event));
	r->seen = r->host;
}

static void blocking_rectangle(struct round *r)
{
	const size_t zero[3] = {0, 0, 0}, all[3] = {BYTES, 1, 1};
	add(r, r->in, r->out, NULL);
	CHECK(clEnqueueReadBufferRect(r->gpu.queue, r->out, CL_TRUE, zero, zero, all, BYTES, 0, BYTES, 0, r->host, 0, NULL, &r->event));
	r->seen = r->host;
}

static void blocking_write(struct round *r)
{
	for (cl_uint i = 0; i < ITEMS; i++)
		r->host[i] = i + 1;
	CHECK(clEnqueueWriteBuffer(r->gpu.queue, r->out, CL_TRUE, 0, BYTES, r->host, 0, NULL, &r->event));
	for (cl_uint i = 0; i < ITEMS; i++)
		r->host[i] = 0;
}

static void wait_for_event(struct round *r)
{
	read_later(r);
	CHECK(clWaitForEvents(1, &r->event));
}

/* A queue that waits for another's event. */
static void wait_across(struct round *r)
{
	cl_event before = NULL;
	cl_command_queue first = r->gpu.queue, second = other_queue(r);
	add(r, r->in, r->out, &before);
	CHECK(clFlush(first));
	CHECK(clEnqueueReadBuffer(second, r->out, CL_FALSE, 0, BYTES, r->host, 1, &before, &r->event));
	follow(r);
	r->seen = r->host;
	CHECK(clFinish(second));
	CHECK(clReleaseEvent(before));
	CHECK(clReleaseCommandQueue(second));
}

static void wait_for_user(struct round *r)
{
	cl_int status;
	cl_event gate = clCreateUserEvent(r->gpu.context, &status);
	CHECK(status);
	add(r, r->in, r->out, NULL);
	CHECK(clEnqueueReadBuffer(r->gpu.queue, r->out, CL_FALSE, 0, BYTES, r->host, 1, &gate, &r->event));
	follow(r);
	r->seen = r->host;
	CHECK(clSetUserEventStatus(gate, CL_COMPLETE));
	finish(r);
	CHECK(clReleaseEvent(gate));
}

/* Buffers come and go between the command and the wait, some in use by another queue. */
static void churn_finish(struct round *r)
{
	cl_command_queue first = r->gpu.queue, second = other_queue(r);
	for (int i = 0; i < OTHERS; i++) {
		cl_mem buffer = create_between(&r->gpu, BYTES);
		r->gpu.queue = i % 2 ? first : second;
		add(r, r->in, buffer, NULL);
		CHECK(clReleaseMemObject(buffer));
	}
	r->gpu.queue = first;
	run(r);
	for (int i = 0; i < OTHERS; i++)
		CHECK(clReleaseMemObject(create_between(&r->gpu, BYTES)));
	finish(r);
	CHECK(clFinish(second));
	CHECK(clReleaseCommandQueue(second));
}

/* A queue appears between the command and the wait; memory was used again in the order of the first. */
static void appear_finish(struct round *r)
{
	for (int i = 0; i < OTHERS; i++) {
		cl_mem buffer = create_between(&r->gpu, BYTES);
		add(r, r->in, buffer, NULL);
		CHECK(clReleaseMemObject(buffer));
	}
	run(r);
	cl_command_queue second = other_queue(r);
	finish(r);
	CHECK(clReleaseCommandQueue(second));
}

/* Memory that the program has released ends with the last command on it. */
static void ending_finish(struct round *r)
{
	cl_mem buffer = create_between(&r->gpu, BYTES);
	CHECK(clSetMemObjectDestructorCallback(buffer, ended, called(r)));
	add(r, r->in, buffer, NULL);
	gpu_arguments(r->kernel, sizeof r->in, &r->in, sizeof r->out, &r->out, (size_t)0); /* some drivers' kernels keep their arguments */
	CHECK(clReleaseMemObject(buffer));
	CHECK(clEnqueueMarkerWithWaitList(r->gpu.queue, 0, NULL, &r->event));
	finish(r);
}

static void release_queue(struct round *r)
{
	read_later(r);
	CHECK(clRetainCommandQueue(r->gpu.queue)); /* the round's own */
	CHECK(clReleaseCommandQueue(r->gpu.queue));
	CHECK(clWaitForEvents(1, &r->event));
}

static void shared_copy(struct round *r)
{
	cl_uint *shared = r->shared;
	for (cl_uint i = 0; i < ITEMS; i++)
		shared[i] = i + 1;
	CHECK(clEnqueueSVMMemcpy(r->gpu.queue, CL_TRUE, r->host, shared, BYTES, 0, NULL, &r->event));
	r->seen = r->host;
}

static void shared_map(struct round *r)
{
	const cl_uint one = 1;
	CHECK(clEnqueueSVMMemFill(r->gpu.queue, r->shared, &one, sizeof one, BYTES, 0, NULL, NULL));
	CHECK(clEnqueueSVMMap(r->gpu.queue, CL_TRUE, CL_MAP_READ, r->shared, BYTES, 0, NULL, &r->event));
	for (cl_uint i = 0; i < ITEMS; i++)
		r->host[i] = ((cl_uint *)r->shared)[i] + i;
	r->seen = r->host;
	CHECK(clEnqueueSVMUnmap(r->gpu.queue, r->shared, 0, NULL, NULL));
}

static const struct way {
	const char *name;
	void (*wait)(struct round *);
	bool calls;  /* a callback was set */
	bool shared; /* it needs shared memory */
} ways[] = {
	{"kernel, finish", kernel_finish, true, false},
	{"flush, finish", flush_finish, true, false},
	{"read, finish", read_finish, true, false},
	{"write, finish", write_finish, true, false},
	{"copy, finish", copy_finish, true, false},
	{"map, finish", map_finish, true, false},
	{"marker, finish", marker_finish, true, false},
	{"barrier, finish", barrier_finish, true, false},
	{"buffers, finish", churn_finish, true, false},
	{"queue, finish", appear_finish, true, false},
	{"other queue, finish", wait_across, true, false},
	{"user event, finish", wait_for_user, true, false},
	{"wait", wait_for_event, true, false},
	{"release queue, wait", release_queue, true, false},
	{"blocking read", blocking_read, false, false},
	{"blocking rectangle", blocking_rectangle, false, false},
	{"blocking write", blocking_write, false, false},
	{"blocking map", blocking_map, false, false},
	{"blocking shared copy", shared_copy, false, true},
	{"blocking shared map", shared_map, false, true},
	{"destructor, finish", ending_finish, true, false},
};

static bool is_wrong(const cl_uint *seen)
{
	for (cl_uint i = 0; i < ITEMS; i++)
		if (seen[i] != i + 1)
			return true;
	return false;
}

static bool references_differ(const struct round *r)
{
	cl_uint in = 0, out = 0;
	CHECK(clGetMemObjectInfo(r->in, CL_MEM_REFERENCE_COUNT, sizeof in, &in, NULL));
	CHECK(clGetMemObjectInfo(r->out, CL_MEM_REFERENCE_COUNT, sizeof out, &out, NULL));
	return in != 1 || out != 1;
}

/* At once after the wait: what is seen first, first. */
static void look(struct round *r, const struct way *way, size_t late[LOOKED])
{
	cl_int status;
	cl_ulong end = 0;
	CHECK(clGetEventInfo(r->event, CL_EVENT_COMMAND_EXECUTION_STATUS, sizeof status, &status, NULL));
	late[STATUS] += status != CL_COMPLETE;
	late[CALLBACK] += way->calls && atomic_load(called(r)) != 1;
	if (r->profiled)
		late[TIMES] += clGetEventProfilingInfo(r->event, CL_PROFILING_COMMAND_END, sizeof end, &end, NULL) != CL_SUCCESS || !end;
	late[REFERENCES] += references_differ(r);
	if (r->seen)
		late[CONTENTS] += is_wrong(r->seen);
}

/* What the device has is right in the end, too. */
static void look_at_device(struct round *r, const struct way *way, size_t late[LOOKED])
{
	cl_uint got[ITEMS];
	if (r->seen && r->seen != r->host)
		CHECK(clEnqueueUnmapMemObject(r->gpu.queue, r->out, (void *)(uintptr_t)r->seen, 0, NULL, NULL));
	if (way->shared || way->wait == ending_finish)
		return;
	CHECK(clEnqueueReadBuffer(r->gpu.queue, r->out, CL_TRUE, 0, BYTES, got, 0, NULL, NULL));
	late[CONTENTS] += is_wrong(got);
}

static void one_round(struct round *r, const struct way *way, size_t late[LOOKED])
{
	cl_int status;
	cl_uint numbers[ITEMS];
	for (cl_uint i = 0; i < ITEMS; i++)
		numbers[i] = i;
	r->gpu.queue = clCreateCommandQueue(r->gpu.context, r->gpu.device, r->profiled ? CL_QUEUE_PROFILING_ENABLE : 0, &status);
	CHECK(status);
	r->in = clCreateBuffer(r->gpu.context, CL_MEM_COPY_HOST_PTR, BYTES, numbers, &status);
	CHECK(status);
	r->out = clCreateBuffer(r->gpu.context, CL_MEM_READ_WRITE, BYTES, NULL, &status);
	CHECK(status);
	r->seen = NULL;
	r->number++;
	atomic_store(called(r), 0);
	way->wait(r);
	look(r, way, late);
	look_at_device(r, way, late);
	CHECK(clWaitForEvents(1, &r->event));
	for (int i = 0; i < 1000 && way->calls && !atomic_load(called(r)); i++) /* a late callback must not count in the round after the next */
		pause_us(1000);
	CHECK(clReleaseEvent(r->event));
	CHECK(clReleaseMemObject(r->in));
	CHECK(clReleaseMemObject(r->out));
	CHECK(clFinish(r->gpu.queue));
	CHECK(clReleaseCommandQueue(r->gpu.queue));
}

static void *spin(void *arg)
{
	(void)arg;
	for (;;)
		atomic_thread_fence(memory_order_relaxed);
	return NULL;
}

int main(int argc, char **argv)
{
	struct arguments arguments = arguments_read(argc, argv, "[ROUNDS] [LOAD]", 2);
	size_t rounds = arguments_count(&arguments, 0, 500), load = arguments_count(&arguments, 1, 3);
	static struct round r;
	cl_command_queue_properties can = 0;
	r.gpu = gpu_open(0);
	r.kernel = gpu_kernel(gpu_build(&r.gpu, source), "add");
	CHECK(clGetDeviceInfo(r.gpu.device, CL_DEVICE_QUEUE_PROPERTIES, sizeof can, &can, NULL));
	r.profiled = can & CL_QUEUE_PROFILING_ENABLE;
	cl_device_svm_capabilities svm = 0;
	if (clGetDeviceInfo(r.gpu.device, CL_DEVICE_SVM_CAPABILITIES, sizeof svm, &svm, NULL) == CL_SUCCESS && svm)
		r.shared = clSVMAlloc(r.gpu.context, CL_MEM_READ_WRITE, BYTES, 0);
	for (size_t i = 0; i < load; i++) {
		pthread_t thread;
		if (pthread_create(&thread, NULL, spin, NULL) != 0)
			fail("no thread");
	}
	for (size_t i = 0; i < sizeof ways / sizeof *ways; i++) {
		size_t late[LOOKED] = {0};
		for (size_t round = 0; round < rounds && (r.shared || !ways[i].shared); round++)
			one_round(&r, &ways[i], late);
		printf("%s:", ways[i].name);
		for (int what = 0; what < LOOKED; what++)
			printf(" %s %zu", words[what], late[what]);
		puts("");
		fflush(stdout);
	}
	return EXIT_SUCCESS;
}
