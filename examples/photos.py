"""photos.py: the program of make demo-python, with PyOpenCL's arrays. It develops photographs as they come from a camera, twelve a
second. It is written as such programs are, and has five faults that gpumemtop finds:

    keep_preview    keeps a preview of each bright photograph in a list
    open_lens       is used for the first photographs only, and stays until the end
    brightness      waits in get() for each photograph, before the next one can begin
    create_panorama asks once for more than a buffer may have
    the pool        has too low a limit for what one photograph needs: make demo-python sets it

photos.py [PHOTOGRAPHS] [A SECOND]
"""

import sys
import time

import numpy
import pyopencl
import pyopencl.array as array

PIXELS, CORRECTED, PREVIEW, BRIGHT = 1 << 18, 12, 8, 150

album = []


def open_lens(queue):
    return array.to_device(queue, numpy.linspace(0.9, 1, 9 * PIXELS, dtype=numpy.float32).reshape(9, PIXELS))


def develop(queue, pixels):
    photo = array.to_device(queue, pixels)
    blurred = (photo + photo * 0.5) / 1.5
    return photo * 2 - blurred


def correct(photo, lens):
    for part in range(9):
        photo = photo * lens[part]
    return photo


def brightness(photo):
    return float(array.sum(photo).get()) / PIXELS


def keep_preview(photo):
    """Keeps a preview for later, which never comes."""
    album.append(photo[: PIXELS // PREVIEW].copy())


def create_panorama(context):
    """Tries to put a panorama together from all photographs at once, and does without where the device refuses."""
    try:
        pyopencl.Buffer(context, pyopencl.mem_flags.READ_WRITE, 2 * context.devices[0].max_mem_alloc_size)
    except pyopencl.LogicError as error:
        print("no panorama:", error)


def main():
    photographs, per_second = (int(a) for a in (sys.argv[1:] + ["480", "12"][len(sys.argv) - 1 :]))
    context = pyopencl.create_some_context(interactive=False)
    queue = pyopencl.CommandQueue(context)
    lens = open_lens(queue)
    frame, total, start = numpy.arange(PIXELS) % 256, 0.0, time.monotonic()
    for i in range(photographs):
        photo = develop(queue, (frame * (1.5 if i % 4 == 3 else 1)).astype(numpy.float32))
        if i < CORRECTED:
            photo = correct(photo, lens)
        light = brightness(photo)
        total += light
        if light > BRIGHT:
            keep_preview(photo)
        if i == photographs // 3:
            create_panorama(context)
        time.sleep(max(0, start + (i + 1) / per_second - time.monotonic()))
    print(f"photos.py: brightness {total / photographs:.1f} on average, {len(album)} previews")


main()
