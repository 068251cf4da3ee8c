"""Creates buffers with PyOpenCL at three places: directly, in a method, and through pyopencl.array. One on a thread of its own.
Writes and reads at two, around which PyOpenCL gives up the interpreter's lock."""
import threading

import numpy
import pyopencl
import pyopencl.array

context = pyopencl.create_some_context(interactive=False)
queue = pyopencl.CommandQueue(context)


class Solver:
    def step(self, turn):
        buffer = pyopencl.Buffer(context, pyopencl.mem_flags.READ_WRITE, 4096 * (1 + turn % 3))
        buffer.release()


def total(turn):
    return int(pyopencl.array.zeros(queue, 1000, numpy.float32).fill(turn).get().sum())


def keep():
    kept.append(pyopencl.Buffer(context, pyopencl.mem_flags.READ_WRITE, 1 << 20))


def put(turn):
    pyopencl.enqueue_copy(queue, kept[0], numpy.full(1000, turn, numpy.int32))


kept = []
thread = threading.Thread(target=keep)
thread.start()
thread.join()
for turn in range(50):
    Solver().step(turn)
    put(turn)
    print(total(turn))
