/* fake_loader.h: what the fake loader tells the tests. */
#ifndef FAKE_LOADER_H
#define FAKE_LOADER_H

#include <CL/cl_layer.h>

#define FAKE_EXPORT __attribute__((visibility("default")))

typedef cl_int CL_API_CALL init_with_properties_fn(cl_uint, const cl_icd_dispatch *, cl_uint *, const cl_icd_dispatch **,
						   const cl_properties *);
typedef cl_int(CL_API_CALL *pfn_deinit)(void);

struct fake_loader {
	unsigned starts, layers;
	_Atomic unsigned creates; /* calls of clCreateBuffer's entry */
};
extern FAKE_EXPORT struct fake_loader fake_loader;
/* Takes the layers out and tells them, as a loader does when the process ends. */
FAKE_EXPORT void fake_loader_ends(void);

/* The other layer's: inits with and without properties, creates that it passed on. */
struct fake_layer {
	unsigned inits, properties;
	_Atomic unsigned creates;
};
extern FAKE_EXPORT struct fake_layer fake_layer;

#endif
