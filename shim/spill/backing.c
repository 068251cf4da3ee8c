/* backing.c: see backing.h. */
#define _GNU_SOURCE
#include "backing.h"

#include "../base/lock.h"
#include "choose.h"

#include <stdlib.h>
#include <sys/mman.h>

#define HUGE_PAGE ((size_t)2 << 20) /* bytes */
#define LARGE ((size_t)1 << 20)     /* bytes: from here on the search for room costs nothing beside the copy */

/* Of huge pages, where the system has some: to touch small ones for the first time takes longer than the copy. */
void *gmt_spill_backing_new(size_t size)
{
	void *room = NULL;
	if (size < HUGE_PAGE)
		return malloc(size);
	if (posix_memalign(&room, HUGE_PAGE, size) != 0)
		return NULL;
	(void)madvise(room, size, MADV_HUGEPAGE); /* a hint */
	return room;
}

/* The room of one that is on the device again and was written there. Without that all that ever left would have some. */
static bool inherit_backing(struct gmt_spill_object *root)
{
	struct gmt_spill_object *from = gmt_spill_list_find_stale(root->size);
	if (!from)
		return false;
	gmt_lock(&from->lock);
	root->host = from->host;
	from->host = NULL;
	gmt_unlock(&from->lock);
	return true;
}

bool gmt_spill_backing_take(struct gmt_spill_object *root)
{
	if (!root->host && !(root->size >= LARGE && inherit_backing(root)))
		root->host = gmt_spill_backing_new(root->size);
	return root->host != NULL;
}
