"""Heat on a plate with PyOpenCL's arrays: each operator makes a new one."""

import sys

import numpy
import pyopencl
import pyopencl.array

context = pyopencl.create_some_context(interactive=False)
queue = pyopencl.CommandQueue(context)
rounds, side = int(sys.argv[1]), int(sys.argv[2])
plate = pyopencl.array.to_device(queue, numpy.random.default_rng(1).random(side * side, numpy.float32))
for _ in range(rounds):
    plate = (plate + (plate * 0.5 + 0.25) * 0.1 - plate * plate * 0.01) / 1.05
print(round(float(pyopencl.array.sum(plate).get()), 1))
