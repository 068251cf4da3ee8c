/*
 * images.c: what decides whether a program can make images. Preloaded, and built in two ways: one that gets a plugin that
 * can, and one that can itself (MAKES_IMAGES), whose table of symbols has nothing to be found by.
 */
#include "carved.h"

#include <dlfcn.h>

static bool gets_a_part(void)
{
	cl_mem buffer = new_buffer(100);
	bool part = is_part(GMT_KIND_CREATE);
	OK(clReleaseMemObject(buffer));
	return part;
}

#ifdef MAKES_IMAGES
TEST(a_program_that_makes_images_gets_no_parts)
{
	fake.imagesofwholes = 1;
	begin_carved((struct options){.nouses = true});
	CHECK(!gets_a_part());
	CHECK(!gets_a_part());
	EQUAL(last_event(GMT_KIND_DEVICE).tag, ALIGNMENT); /* looked at late, where nothing is recorded */
	EQUAL(events(GMT_KIND_DIAG), 1);
	end_clean();
	EQUAL(clCreateImage(NULL, 0, NULL, NULL, NULL, NULL) != NULL, 0);
}
#else
TEST(a_program_whose_plugin_makes_images_gets_no_more_parts)
{
	fake.imagesofwholes = 1;
	begin_carved((struct options){0});
	clCreateImage2D(NULL, 0, NULL, 0, 0, 0, NULL, NULL); /* which makes none of buffers */
	CHECK(dlsym(RTLD_DEFAULT, "clCreateImage3D"));
	CHECK(gets_a_part());
	EQUAL(fake.contexts, 1); /* on a GPU one of our own takes as long as a small program */
	void *plugin = dlopen(path_beside("libplugin.so"), RTLD_NOW);
	CHECK(plugin);
	CHECK(!gets_a_part());
	CHECK(!gets_a_part());
	EQUAL(fake.contexts, 2);
	end_clean();
}
#endif
