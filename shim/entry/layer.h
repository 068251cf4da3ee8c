/* layer.h: ICD loaders that have us as a layer. */
#ifndef GMT_LAYER_H
#define GMT_LAYER_H

#include "../base/opencl.h"

/* Whether code at address belongs to such a loader. */
bool gmt_layer_is_loader_code(const void *address);
/* Whether loaders in this process are asked to take us as a layer, if they support layers. */
bool gmt_layer_expected(void);
/* Notes that a loader has looked up a layer's clInitLayer* and found function. */
void gmt_layer_note_asked(const void *function);

#endif
