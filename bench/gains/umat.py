"""Edges of a film with OpenCV's UMat: every step has a result of its own."""

import sys

import cv2
import numpy

rounds, side = int(sys.argv[1]), int(sys.argv[2])
assert cv2.ocl.haveOpenCL(), "OpenCV finds no OpenCL"
cv2.ocl.setUseOpenCL(True)
frame = numpy.random.default_rng(1).integers(0, 255, (side, side, 3), numpy.uint8)
total = 0
for turn in range(rounds):
    picture = cv2.UMat(frame)
    grey = cv2.cvtColor(picture, cv2.COLOR_BGR2GRAY)
    smooth = cv2.GaussianBlur(grey, (7, 7), 1.5)
    _, edges = cv2.threshold(cv2.Laplacian(smooth, cv2.CV_8U), 8, 255, cv2.THRESH_BINARY)
    total += cv2.countNonZero(edges)
print(total)
