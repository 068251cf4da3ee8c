/* test_python.c: call sites in Python. */
#include "fake_python.h"
#include "harness.h"

#include <pthread.h>

#define STRING(text) {"", 1u << 6, text}
#define CODE(name_) {.file = &file, .name = &(name_), .references = 1}

static int other;
static uintptr_t holder[2], state[8];
static struct fake_string file = STRING("step.py"), module_name = STRING("<module>");
static struct fake_string function_name = STRING("Solver.step"), second_name = STRING("<lambda>");
static struct fake_code program = CODE(module_name), function = CODE(function_name), second = CODE(second_name);
static struct fake_frame outer = {.code = &program, .line = 9, .references = 1}, inner = {.code = &function, .line = 3, .back = &outer, .references = 1};

/* What the structures of CPython 3.11 say of a frame. */
static void lay_out(struct fake_frame *frame)
{
	frame->words[4] = (uintptr_t)frame->code;
	frame->words[6] = frame->back ? (uintptr_t)frame->back->words : 0;
	frame->words[7] = (uintptr_t)frame->code + 100 + (uintptr_t)frame->line;
}

static void set_line(int line)
{
	inner.line = line;
	lay_out(&inner);
}

static void run_python(void)
{
	fake_python = (struct fake_python){.mine = state, .current = state, .frame = &inner};
	set_line(3);
	lay_out(&outer);
	holder[1] = (uintptr_t)inner.words;
	state[7] = (uintptr_t)holder;
}

static void balanced(int known)
{
	CHECK(!fake_python.paused && !fake_python.error);
	EQUAL(inner.references, 1);
	EQUAL(outer.references, 1);
	EQUAL(fake_python.strings, 0);
	EQUAL(program.references + function.references + second.references, 3 + known);
}

/* The tag of a buffer that is created here. */
static uint32_t tag_here(void)
{
	OK(clReleaseMemObject(new_buffer(10)));
	return last_event(GMT_KIND_CREATE).tag;
}

/* The innermost frames of the last tag are native, those behind lines. */
static struct gmtframe line_of_tag(unsigned from_the_end)
{
	struct gmtframe frames[GMT_STACK_MAX];
	size_t bytes = last_event(GMT_KIND_TAG).size;
	CHECK(bytes >= (from_the_end + 1) * sizeof frames[0] && bytes <= sizeof frames);
	memcpy(frames, last_text(GMT_KIND_TAG), bytes);
	return frames[bytes / sizeof frames[0] - 1 - from_the_end];
}

TEST(lines_of_python_are_call_sites)
{
	run_python();
	begin((struct options){.tagmode = GMT_TAGS_STACK});
	size_t before = events(GMT_KIND_TAG); /* of context and queue */
	uint32_t tags[3];
	for (volatile int i = 0; i < 3; i++) { /* not unrolled: one stack */
		set_line(i == 1 ? 4 : 3);
		tags[i] = tag_here();
	}
	CHECK(tags[0] != tags[1]);
	EQUAL(tags[0], tags[2]);
	EQUAL(events(GMT_KIND_TAG) - before, 2);
	EQUAL(line_of_tag(0).offset, 9);
	EQUAL(line_of_tag(1).offset, 4);
	CHECK(line_of_tag(0).module != line_of_tag(1).module);
	balanced(2); /* the functions are kept */
	inner.code = &second; /* on the same line */
	set_line(3);
	CHECK(tag_here() != tags[0]);
	EQUAL(last_event(GMT_KIND_MODULE).flags, GMT_FLAG_SCRIPT);
	CHECK(memcmp(last_text(GMT_KIND_MODULE), "step.py\0<lambda>", sizeof "step.py\0<lambda>" - 1) == 0);
	inner.code = &function;
	end_clean();
}

TEST(python_before_3_11_has_plain_names)
{
	run_python();
	fake_python.old = true;
	begin((struct options){.tagmode = GMT_TAGS_STACK});
	tag_here();
	balanced(2);
	end_clean();
}

/* Reads of a command, whose tag has these lines. */
static void transfer_with_lines(cl_mem buffer, uint64_t inner_line)
{
	char host[64];
	OK(clEnqueueReadBuffer(world.queue, buffer, CL_TRUE, 0, 64, host, 0, NULL, NULL));
	EQUAL(last_event(GMT_KIND_TRANSFER).tag, last_event(GMT_KIND_TAG).tag);
	EQUAL(line_of_tag(0).offset, 9);
	EQUAL(line_of_tag(1).offset, inner_line);
}

#define STACKS ((struct options){.tagmode = GMT_TAGS_STACK, .transfers = GMT_TRANSFERS_SAMPLED})

TEST(lines_of_python_are_read_without_the_lock_once_they_were_right)
{
	run_python();
	begin(STACKS);
	cl_mem buffer = new_buffer(64);
	fake_python.current = &other;
	set_line(5);
	transfer_with_lines(buffer, 5);
	struct gmtframe before = line_of_tag(1);
	set_line(6);
	transfer_with_lines(buffer, 6);
	EQUAL(line_of_tag(1).module, before.module);
	inner.code = &second;
	set_line(6);
	transfer_with_lines(buffer, 6);
	CHECK(memcmp(last_text(GMT_KIND_MODULE), "step.py\0<lambda>", sizeof "step.py\0<lambda>" - 1) == 0);
	inner.code = &function;
	balanced(2);
	OK(clReleaseMemObject(buffer));
	end_clean();
}

/* A transfer whose tag has no line. */
static void *transfer_without_lines(void *buffer)
{
	char host[64];
	OK(clEnqueueReadBuffer(world.queue, buffer, CL_TRUE, 0, 64, host, 0, NULL, NULL));
	CHECK(line_of_tag(0).offset != 9);
	return NULL;
}

TEST(a_layout_of_another_python_is_not_believed)
{
	Py_Version = 0x030c00f0;
	run_python();
	begin(STACKS);
	cl_mem buffer = new_buffer(64);
	fake_python.current = &other;
	transfer_without_lines(buffer);
	OK(clReleaseMemObject(buffer));
	end_clean();
}

TEST(other_threads_of_python_are_not_read)
{
	run_python();
	begin(STACKS);
	cl_mem buffer = new_buffer(64);
	fake_python.current = &other;
	pthread_t thread;
	pthread_create(&thread, NULL, transfer_without_lines, buffer);
	pthread_join(thread, NULL);
	OK(clReleaseMemObject(buffer));
	end_clean();
}

TEST(names_of_python_that_are_not_ascii_are_not_read)
{
	run_python();
	begin(STACKS);
	cl_mem buffer = new_buffer(64);
	fake_python.current = &other;
	function_name.state = 0;
	set_line(5);
	char host[64];
	OK(clEnqueueReadBuffer(world.queue, buffer, CL_TRUE, 0, 64, host, 0, NULL, NULL));
	EQUAL(line_of_tag(0).offset, 9);
	CHECK(line_of_tag(1).offset != 5);
	OK(clReleaseMemObject(buffer));
	end_clean();
}

static void no_lines(void)
{
	begin((struct options){.tagmode = GMT_TAGS_STACK});
	void *error = fake_python.error;
	tag_here();
	CHECK(fake_python.error == error);
	fake_python.error = NULL;
	balanced(0);
	end_clean();
}

TEST(a_thread_without_the_lock_asks_python_nothing)
{
	run_python();
	fake_python.current = &other;
	no_lines();
}

TEST(a_thread_of_no_python_asks_it_nothing)
{
	run_python();
	fake_python.mine = NULL;
	no_lines();
}

TEST(an_exception_of_python_stays_set)
{
	run_python();
	fake_python.error = &other;
	no_lines();
}
