"""Creates two buffers on one line, forty times: with other flags each (flags), or equal ones (equal), which nothing tells apart."""
import sys

import pyopencl

context = pyopencl.create_some_context(interactive=False)
size, read = 1 << 20, pyopencl.mem_flags.READ_ONLY
write = pyopencl.mem_flags.WRITE_ONLY if sys.argv[1] == "flags" else read


def pair():
    return pyopencl.Buffer(context, read, size), pyopencl.Buffer(context, write, size)


for turn in range(40):
    for buffer in pair():
        buffer.release()
