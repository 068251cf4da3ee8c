/* evict.h: which object goes to host memory, and its way there. Under the residency lock, except where it says otherwise. */
#ifndef GMT_SPILL_EVICT_H
#define GMT_SPILL_EVICT_H

#include "object.h"

/* Takes the memory of one object that no command uses, least recently used first; waits where commands complete by themselves. */
bool gmt_spill_evict_one(void);
/* The list of roots that have a real object. */
void gmt_spill_list_add(struct gmt_spill_object *root);
void gmt_spill_list_remove(struct gmt_spill_object *root);
/* Whether anything was ever evicted in this process: any lock or none. */
bool gmt_spill_is_short(void);
/* Releases the real objects of sub-buffers. */
void gmt_spill_release_children(struct gmt_spill_object *root);

#endif
