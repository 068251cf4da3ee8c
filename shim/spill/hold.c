/* hold.c: see hold.h. */
#define _GNU_SOURCE
#include "hold.h"

#include "../base/call.h"
#include "../base/lock.h"
#include "../pool/budget.h"
#include "choose.h"
#include "context.h"
#include "figures.h"

#include <stdlib.h>

static _Atomic uint32_t residency;
static _Atomic(struct gmt_spill_object *) ended; /* objects whose last hold went while another thread had the lock */

/* Objects that have left all lists: what is left to do runs without the lock, because drivers call the program's callbacks. */
static void CL_CALLBACK real_ended(cl_mem real, void *data)
{
	(void)real;
	struct gmt_spill_object *object = data;
	struct gmt_spill_ending *ending = atomic_exchange(&object->endings, NULL);
	while (ending) {
		struct gmt_spill_ending *next = ending->next;
		ending->notify(gmt_spill_handle(object), ending->data);
		free(ending);
		ending = next;
	}
	gmt_spill_object_free(object);
}

static void finish_object(struct gmt_spill_object *object)
{
	cl_mem real = object->real;
	size_t counted = object->parent ? 0 : object->size;
	struct gmt_spill_context *context = object->context;
	free(object->host);
	free(object->image);
	object->host = NULL;
	object->image = NULL;
	object->real = NULL;
	bool later = real && atomic_load(&object->endings) && gmt_bare.clSetMemObjectDestructorCallback &&
		     gmt_bare.clSetMemObjectDestructorCallback(real, real_ended, object) == CL_SUCCESS;
	if (!later)
		real_ended(real, object);
	if (real) {
		gmt_bare.clReleaseMemObject(real);
		gmt_budget_give_back(counted);
	}
	gmt_spill_context_drop(context);
}

/* Takes it out of all lists. */
static void unlink_object(struct gmt_spill_object *object)
{
	if (object->parent) {
		struct gmt_spill_object **link = &object->root->child;
		while (*link != object)
			link = &(*link)->sibling;
		*link = object->sibling;
		atomic_fetch_sub(&object->context->made, object->real != NULL);
		atomic_fetch_sub(&object->root->parts, object->real != NULL);
	} else if (object->real) {
		gmt_spill_list_remove(object);
		gmt_spill_record(GMT_SPILL_END, object, gmt_now());
	} else if (object->contents) {
		atomic_fetch_sub(&gmt_spill_figures.spilled, object->size);
		gmt_spill_record(GMT_SPILL_END, object, gmt_now());
	}
}

static void push_ended(struct gmt_spill_object *object)
{
	gmt_spill_count_ending();
	object->ended = atomic_load(&ended);
	while (!atomic_compare_exchange_weak(&ended, &object->ended, object))
		;
}

/* A release never waits for the lock: the thread that has it ends the object afterwards. */
static void end_pushed_objects(void)
{
	while (atomic_load(&ended)) {
		uint32_t none = 0;
		if (!atomic_compare_exchange_strong(&residency, &none, 1))
			return;
		struct gmt_spill_object *list = atomic_exchange(&ended, NULL);
		for (struct gmt_spill_object *object = list; object; object = object->ended)
			unlink_object(object);
		atomic_store(&residency, 0);
		while (list) {
			struct gmt_spill_object *object = list, *parent = object->parent;
			list = object->ended;
			finish_object(object);
			gmt_spill_count_ended();
			if (!parent)
				continue;
			atomic_fetch_sub(&parent->children, 1);
			if (atomic_fetch_sub(&parent->holds, 1) == 1)
				push_ended(parent);
		}
	}
}

void gmt_spill_drop_hold(struct gmt_spill_object *object)
{
	if (atomic_fetch_sub(&object->holds, 1) != 1)
		return;
	push_ended(object);
	end_pushed_objects();
}

bool gmt_spill_lock(void)
{
	return gmt_lock_driver(&residency);
}

void gmt_spill_unlock(void)
{
	gmt_unlock_driver(&residency);
	atomic_thread_fence(memory_order_seq_cst); /* who still saw the lock has put its object there */
	end_pushed_objects();
}

bool gmt_spill_add_to_root(struct gmt_spill_object *child)
{
	if (!gmt_spill_lock())
		return false;
	child->sibling = child->root->child;
	child->root->child = child;
	gmt_spill_unlock();
	return true;
}
