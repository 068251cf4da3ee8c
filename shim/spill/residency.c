/* residency.c: see residency.h. */
#define _GNU_SOURCE
#include "residency.h"

#include "../base/call.h"
#include "../base/lock.h"
#include "../base/ring.h"
#include "../pool/budget.h"
#include "../pool/oom.h"
#include "context.h"
#include "evict.h"
#include "figures.h"
#include "next.h"
#include "sentence.h"

#include <stdlib.h>
#include <string.h>

#define MOMENT 20000u /* ns */

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

static void finish(struct gmt_spill_object *object)
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
		gmt_budget_give(counted);
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
	gmt_spill_object_ends();
	object->ended = atomic_load(&ended);
	while (!atomic_compare_exchange_weak(&ended, &object->ended, object))
		;
}

/* A release never waits for the lock: the thread that has it ends the object afterwards. */
static void end_all(void)
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
			finish(object);
			gmt_spill_object_has_ended();
			if (!parent)
				continue;
			atomic_fetch_sub(&parent->children, 1);
			if (atomic_fetch_sub(&parent->holds, 1) == 1)
				push_ended(parent);
		}
	}
}

void gmt_spill_let_go(struct gmt_spill_object *object)
{
	if (atomic_fetch_sub(&object->holds, 1) != 1)
		return;
	push_ended(object);
	end_all();
}

static bool take_lock(void)
{
	return gmt_lock_driver(&residency);
}

static void give_lock(void)
{
	gmt_unlock_driver(&residency);
	atomic_thread_fence(memory_order_seq_cst); /* who still saw the lock has put its object there */
	end_all();
}

bool gmt_spill_join(struct gmt_spill_object *child)
{
	if (!take_lock())
		return false;
	child->sibling = child->root->child;
	child->root->child = child;
	give_lock();
	return true;
}

static cl_mem make_image(const struct gmt_spill_object *object, cl_int *err)
{
	cl_image_desc desc = object->image->desc;
	desc.mem_object = object->parent->real;
	return gmt_bare.clCreateImage((cl_context)atomic_load(&object->context->object.handle), object->flags, &object->image->format, &desc,
				      NULL, err);
}

/* The driver's object, or NULL: what fails for lack of memory is tried again as long as something can go. */
static cl_mem make(const struct gmt_spill_object *object, struct gmt_spill_patience *patience, cl_int *err)
{
	cl_context context = (cl_context)atomic_load(&object->context->object.handle);
	cl_buffer_region region = {object->origin, object->size};
	cl_mem_flags given = object->parent ? object->flags : gmt_spill_context_access(object->context, object->flags);
	cl_mem_flags flags = given & ~(cl_mem_flags)CL_MEM_COPY_HOST_PTR;
	cl_mem real;
	do {
		if (object->parent && object->image)
			real = make_image(object, err);
		else if (object->parent)
			real = gmt_bare.clCreateSubBuffer(object->root->real, flags, CL_BUFFER_CREATE_TYPE_REGION, &region, err);
		else if (object->contents)
			real = gmt_bare.clCreateBuffer(context, flags | CL_MEM_COPY_HOST_PTR, object->size, object->host, err);
		else
			real = gmt_bare.clCreateBuffer(context, flags, object->size, NULL, err);
	} while (!real && gmt_out_of_memory(*err) && gmt_spill_evict_one(patience) == GMT_SPILL_GONE);
	return real;
}

static cl_int make_root(struct gmt_spill_object *root, struct gmt_spill_patience *patience)
{
	cl_int err = CL_MEM_OBJECT_ALLOCATION_FAILURE;
	while (!gmt_budget_take_now(root->size))
		if (gmt_spill_evict_one(patience) != GMT_SPILL_GONE)
			return err;
	uint64_t start = gmt_now();
	cl_mem real = make(root, patience, &err);
	if (!real) {
		gmt_budget_give(root->size);
		return err;
	}
	if (root->contents)
		atomic_fetch_sub(&gmt_spill_figures.spilled, root->size);
	void *host = NULL;
	gmt_lock(&root->lock);
	root->real = real;
	root->made++;
	root->clean = root->contents;
	if (!gmt_spill_is_short()) { /* the copy is worth its memory only where objects go */
		host = root->host;
		root->host = NULL;
		root->clean = false;
	}
	gmt_unlock(&root->lock);
	free(host);
	gmt_spill_list_add(root);
	gmt_spill_record(root->taken && root->contents ? GMT_SPILL_IN : GMT_SPILL_FIRST, root, start);
	return CL_SUCCESS;
}

static cl_int make_child(struct gmt_spill_object *child, struct gmt_spill_patience *patience)
{
	cl_int err = CL_SUCCESS;
	if (!child->parent->real) /* not a root: that has one */
		err = make_child(child->parent, patience);
	cl_mem real = err == CL_SUCCESS ? make(child, patience, &err) : NULL;
	if (!real)
		return err;
	atomic_fetch_add(&child->context->made, 1);
	atomic_fetch_add(&child->root->parts, 1);
	gmt_lock(&child->root->lock);
	child->real = real;
	child->made++;
	gmt_unlock(&child->root->lock);
	return CL_SUCCESS;
}

bool gmt_spill_pin_now(struct gmt_spill_object *object, bool writes)
{
	struct gmt_spill_object *root = object->root;
	gmt_lock(&root->lock);
	bool there = object->real && root->real && !root->leaving;
	if (gmt_likely(there)) {
		root->pins++;
		if (writes) {
			root->contents = true;
			root->clean = false;
		}
	}
	gmt_unlock(&root->lock);
	return there;
}

void gmt_spill_unpin(struct gmt_spill_object *object)
{
	gmt_lock(&object->root->lock);
	object->root->pins--;
	gmt_unlock(&object->root->lock);
}

/* Under the residency lock: no one else takes a real object away. */
static cl_int pin_made(struct gmt_spill_object *object, bool writes, struct gmt_spill_patience *patience)
{
	cl_int err = CL_SUCCESS;
	while (err == CL_SUCCESS && !gmt_spill_pin_now(object, false)) {
		struct gmt_spill_object *root = object->root;
		err = root->real ? CL_SUCCESS : make_root(root, patience);
		if (err != CL_SUCCESS || root == object)
			continue;
		gmt_lock(&root->lock); /* making a sub-buffer may need room, but not its own root's */
		root->pins++;
		gmt_unlock(&root->lock);
		err = object->real ? CL_SUCCESS : make_child(object, patience);
		gmt_spill_unpin(object);
	}
	if (err == CL_SUCCESS && writes) {
		gmt_spill_pin_now(object, true);
		gmt_spill_unpin(object);
	}
	return err;
}

static void unpin_all(const struct gmt_spill_command *command, uint32_t count)
{
	for (uint32_t i = 0; i < count; i++)
		gmt_spill_unpin(command->uses[i].object);
}

/* Pins all or none. */
static cl_int pin_all(struct gmt_spill_command *command, struct gmt_spill_patience *patience)
{
	cl_int err = CL_SUCCESS;
	uint32_t count = 0;
	while (count < command->count && err == CL_SUCCESS) {
		err = pin_made(command->uses[count].object, command->uses[count].writes, patience);
		count += err == CL_SUCCESS;
	}
	if (err != CL_SUCCESS)
		unpin_all(command, count);
	return err;
}

/* False: the lock is lost. */
static bool wait_a_moment(const struct gmt_spill_patience *patience)
{
	if (!patience->alone)
		give_lock();
	gmt_pause(MOMENT);
	return patience->alone || take_lock();
}

static cl_int begin_slowly(struct gmt_spill_command *command)
{
	uint64_t start = gmt_now();
	struct gmt_spill_patience patience = {.command = command, .outcome = GMT_SPILL_GONE};
	struct gmt_spill_account account;
	if (!take_lock())
		return CL_OUT_OF_RESOURCES;
	cl_int err = pin_all(command, &patience);
	while (err != CL_SUCCESS && patience.outcome == GMT_SPILL_LATER) {
		if (!wait_a_moment(&patience))
			return CL_OUT_OF_RESOURCES;
		patience.outcome = GMT_SPILL_GONE;
		err = pin_all(command, &patience);
	}
	if (err != CL_SUCCESS)
		gmt_spill_account(&account);
	give_lock();
	if (gmt_spill_is_short())
		gmt_spill_record_stall(command, start);
	if (err != CL_SUCCESS && !command->may_split)
		gmt_spill_say_short(command, &account);
	return err;
}

cl_int gmt_spill_begin(struct gmt_spill_command *command)
{
	for (uint32_t i = 0; i < command->count; i++) {
		const struct gmt_spill_use *use = &command->uses[i];
		if (gmt_unlikely(!gmt_spill_pin_now(use->object, use->writes))) {
			unpin_all(command, i);
			return begin_slowly(command);
		}
	}
	return CL_SUCCESS;
}

cl_int gmt_spill_begin_or(struct gmt_spill_command *command, cl_int refused)
{
	command->may_split |= refused != CL_SUCCESS;
	cl_int err = gmt_spill_begin(command);
	return err != CL_SUCCESS && refused != CL_SUCCESS ? refused : err;
}

/* Under the root's lock. */
static void add_use(struct gmt_spill_object *root, const struct gmt_spill_command *command, uint64_t id, uint64_t position)
{
	struct gmt_spill_last *free_one = NULL;
	for (uint32_t i = 0; i < root->lasts; i++) {
		struct gmt_spill_last *last = &root->last[i];
		if (gmt_likely(last->queue == command->queue && last->id == id)) {
			last->position = position > last->position ? position : last->position;
			return;
		}
		if (gmt_spill_queue_over(last->queue, last->id, last->position))
			free_one = last;
	}
	if (!free_one && root->lasts < GMT_SPILL_LASTS)
		free_one = &root->last[root->lasts++];
	if (free_one)
		*free_one = (struct gmt_spill_last){command->queue, id, position};
	else
		root->many = true;
}

void gmt_spill_end(struct gmt_spill_command *command, cl_int status)
{
	if (!command->count)
		return;
	uint64_t position = 0, id = 0, tick = gmt_spill_tick();
	if (status == CL_SUCCESS && command->queue) {
		position = gmt_spill_queue_count(command->queue, command->native);
		id = atomic_load_explicit(&command->queue->object.id, memory_order_relaxed);
	}
	for (uint32_t i = 0; i < command->count; i++) {
		struct gmt_spill_object *root = command->uses[i].object->root;
		gmt_lock(&root->lock);
		if (position)
			add_use(root, command, id, position);
		else if (status == CL_SUCCESS)
			root->fixed = true; /* of a queue that we do not know: it must not move any more */
		gmt_spill_used(root, tick);
		root->pins--;
		gmt_unlock(&root->lock);
	}
}

bool gmt_spill_relieve(cl_int status)
{
	if (!gmt_out_of_memory(status))
		return false;
	return gmt_spill_one();
}

bool gmt_spill_one(void)
{
	uint64_t start = gmt_now();
	if (!take_lock())
		return false;
	struct gmt_spill_patience patience = {.start = 0};
	struct gmt_spill_account account;
	while (gmt_spill_evict_one(&patience) == GMT_SPILL_LATER)
		if (!wait_a_moment(&patience))
			return false;
	bool gone = patience.outcome == GMT_SPILL_GONE;
	if (!gone)
		gmt_spill_account(&account);
	give_lock();
	if (gone)
		gmt_spill_record_stall(NULL, start);
	else
		gmt_spill_say_short(NULL, &account);
	return gone;
}

void gmt_spill_explain(const struct gmt_spill_command *command)
{
	struct gmt_spill_account account;
	if (!take_lock())
		return;
	gmt_spill_account(&account);
	give_lock();
	gmt_spill_say_short(command, &account);
}

cl_int gmt_spill_pin(struct gmt_spill_object *object, const char *name)
{
	struct gmt_spill_use use = {object, false};
	struct gmt_spill_command command = {.name = name, .count = 1, .uses = &use};
	return gmt_spill_begin(&command);
}

void gmt_spill_fix(struct gmt_spill_object *object)
{
	gmt_lock(&object->root->lock);
	object->root->fixed = true;
	object->root->contents = true; /* written unseen */
	object->root->clean = false;
	gmt_unlock(&object->root->lock);
}

bool gmt_spill_host_bytes(struct gmt_spill_object *object, size_t offset, size_t size, void *to)
{
	struct gmt_spill_object *root = object->root;
	if (offset > object->size || size > object->size - offset || !take_lock())
		return false;
	bool inside = object->origin <= root->size && object->size <= root->size - object->origin;
	bool there = inside && !root->real && root->contents && root->host;
	if (there)
		memcpy(to, (const char *)root->host + object->origin + offset, size);
	give_lock();
	return there;
}

cl_mem gmt_spill_dummy(const struct gmt_spill_object *object)
{
	if (!take_lock())
		return NULL;
	cl_mem dummy = gmt_spill_context_dummy(object->context);
	give_lock();
	return dummy;
}
