/* test_ledger.c: what was released is noted, and the core takes it back before it does anything else. */
#include "harness.h"

#include "../base/core.h"

#include <pthread.h>

/* The core fails at that call, so that a test sees which of the program's calls it is. */
static void begin_failing_at(const char *call)
{
	setenv("FAKE_CORE_FAIL_AT", call, 1);
	begin((struct options){0});
}

TEST(a_release_is_no_call_of_the_core)
{
	begin_failing_at("4"); /* plan, commit, plan, and then */
	cl_mem buffer = new_buffer(100);
	EQUAL(release(buffer), GMT_OUTCOME_CACHED);
	CHECK(new_buffer(100) == buffer);
	EQUAL(release(buffer), GMT_OUTCOME_CACHED);
	EQUAL(diags(GMT_DIAG_PANIC), 0);
	EQUAL(events(GMT_KIND_ORDER), 1); /* of the thread's first decision */
	EQUAL(release(new_buffer(100)), GMT_OUTCOME_DRIVER);
	EQUAL(diags(GMT_DIAG_PANIC), 1);
	end_clean();
}

TEST(a_release_without_room_is_a_call_of_the_core)
{
	setenv("FAKE_CORE_NO_ROOM", "1", 1);
	begin_failing_at("3"); /* plan, commit, and then */
	EQUAL(release(new_buffer(100)), GMT_OUTCOME_REFUSED);
	EQUAL(diags(GMT_DIAG_PANIC), 1);
	end_clean();
}

TEST(a_release_that_just_fits_is_no_call_of_the_core)
{
	setenv("FAKE_CORE_ROOM", "128", 1);
	begin_failing_at("5"); /* plan, commit, plan, commit, and then */
	cl_mem first = new_buffer(100), second = new_buffer(100);
	EQUAL(release(first), GMT_OUTCOME_CACHED);
	EQUAL(diags(GMT_DIAG_PANIC), 0);
	EQUAL(release(second), GMT_OUTCOME_REFUSED);
	EQUAL(diags(GMT_DIAG_PANIC), 1);
	end_clean();
}

TEST(a_release_when_the_core_is_due_is_a_call_of_the_core)
{
	setenv("FAKE_CORE_DUE", "1", 1);
	begin_failing_at("3");
	EQUAL(release(new_buffer(100)), GMT_OUTCOME_REFUSED);
	EQUAL(diags(GMT_DIAG_PANIC), 1);
	end_clean();
}

TEST(a_release_while_commands_run_is_a_call_of_the_core)
{
	begin_failing_at("3");
	cl_command_queue unordered = new_queue(world.context, UNORDERED);
	cl_mem buffer = new_used(unordered);
	EQUAL(diags(GMT_DIAG_PANIC), 0);
	EQUAL(release(buffer), GMT_OUTCOME_REFUSED);
	EQUAL(diags(GMT_DIAG_PANIC), 1);
	OK(clReleaseCommandQueue(unordered));
	end_clean();
}

enum { MANY = GMT_LEDGER_SIZE + 8 };

/* The first one that is no longer noted comes out as given. */
static void release_many(enum gmtoutcome settling)
{
	cl_mem buffer[MANY];
	for (int i = 0; i < MANY; i++)
		buffer[i] = new_buffer(100);
	for (int i = 0; i < GMT_LEDGER_SIZE; i++)
		EQUAL(release(buffer[i]), GMT_OUTCOME_CACHED);
	EQUAL(diags(GMT_DIAG_PANIC), 0);
	EQUAL(release(buffer[GMT_LEDGER_SIZE]), settling);
	for (int i = GMT_LEDGER_SIZE + 1; i < MANY; i++)
		OK(clReleaseMemObject(buffer[i]));
}

TEST(a_full_ledger_is_settled)
{
	begin((struct options){0});
	release_many(GMT_OUTCOME_CACHED);
	EQUAL(events(GMT_KIND_ORDER), 1); /* the core numbers what was noted as we did */
	for (int i = 0; i < MANY; i++)
		new_buffer(100);
	EQUAL(outcomes(GMT_KIND_CREATE, GMT_OUTCOME_HIT), MANY);
	EQUAL(events(GMT_KIND_ORDER), 1);
}

TEST(a_full_ledger_is_settled_with_the_next_release)
{
	char call[16];
	snprintf(call, sizeof call, "%d", 2 * MANY + 1);
	begin_failing_at(call);
	release_many(GMT_OUTCOME_REFUSED);
	EQUAL(diags(GMT_DIAG_PANIC), 1);
	end_clean();
}

static void *creates(void *buffer)
{
	CHECK(new_buffer(100) == buffer);
	return NULL;
}

TEST(another_thread_gets_what_was_noted)
{
	begin((struct options){0});
	cl_mem buffer = new_buffer(100);
	EQUAL(release(buffer), GMT_OUTCOME_CACHED); /* plan, commit: 2 and 3; this is 4 */
	pthread_t thread;
	EQUAL(pthread_create(&thread, NULL, creates, buffer), 0);
	EQUAL(pthread_join(thread, NULL), 0);
	EQUAL(events(GMT_KIND_ORDER), 2);
	EQUAL(last_event(GMT_KIND_ORDER).object, 5);
	EQUAL(release(buffer), GMT_OUTCOME_CACHED);
	EQUAL(last_event(GMT_KIND_ORDER).object, 6);
	end_clean();
}

TEST(a_context_that_ends_drops_what_was_noted)
{
	begin((struct options){0});
	EQUAL(release(new_buffer(100)), GMT_OUTCOME_CACHED);
	OK(clReleaseCommandQueue(world.queue));
	OK(clReleaseContext(world.context));
	EQUAL(fake.livememory, 0);
	EQUAL(events(GMT_KIND_EVICT), 1);
}
