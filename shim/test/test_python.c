/* test_python.c: call sites in Python. */
#include "fake_python.h"
#include "harness.h"

static int state, other;
static struct fake_code program = {"step.py", "<module>", 1}, function = {"step.py", "Solver.step", 1}, second = {"step.py", "<lambda>", 1};
static struct fake_frame outer = {&program, 9, NULL, 1}, inner = {&function, 3, &outer, 1};

static void run_python(void)
{
	fake_python = (struct fake_python){.mine = &state, .current = &state, .frame = &inner};
	inner.line = 3;
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
		inner.line = i == 1 ? 4 : 3;
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
