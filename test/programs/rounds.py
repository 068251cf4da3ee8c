"""Rounds of buffers of different sizes with PyOpenCL, in a context of all devices: where there are several, buffers are no
sub-allocations."""

import numpy
import pyopencl

context = pyopencl.Context(pyopencl.get_platforms()[0].get_devices())
queue = pyopencl.CommandQueue(context, context.devices[0])


def copied(size, value):
    source = pyopencl.Buffer(context, pyopencl.mem_flags.READ_WRITE, size)
    target = pyopencl.Buffer(context, pyopencl.mem_flags.READ_WRITE, size)
    numbers = numpy.full(1024, value, numpy.int32)
    pyopencl.enqueue_copy(queue, source, numbers)
    pyopencl.enqueue_copy(queue, target, source, byte_count=4096)
    pyopencl.enqueue_copy(queue, numbers, target)
    return int(numbers.sum())


print(sum(copied(size, turn) for turn in range(1500) for size in (64 << 20, 16 << 20, 48 << 20, 32 << 20)))
