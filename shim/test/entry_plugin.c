/* entry_plugin.c: a plugin that makes images and exports nothing, so that its table of symbols has nothing to be found by. */
#include "fake_driver.h"

/* Never called: that it could be is enough. */
__attribute__((destructor)) static void make_image(void)
{
	static volatile cl_context none;
	if (none)
		clCreateImage(none, 0, NULL, NULL, NULL, NULL);
}
