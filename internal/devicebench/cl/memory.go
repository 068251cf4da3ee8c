package cl

// #include "driver.h"
import "C"

import (
	"errors"
	"time"
)

// Session is a context with one device and an in-order queue on it. Its methods are for one goroutine at a time.
type Session struct {
	context C.cl_context
	queue   C.cl_command_queue
}

// Mem is a buffer or a part of one.
type Mem struct{ id C.cl_mem }

// NewSession calls clCreateContext and clCreateCommandQueue.
func NewSession(d Device) (*Session, error) {
	var status C.cl_int
	s := &Session{context: C.driver_context(d.platform, d.id, &status)}
	if err := statusError("clCreateContext", status); err != nil {
		return nil, err
	}
	s.queue = C.driver_queue(s.context, d.id, &status)
	if err := statusError("clCreateCommandQueue", status); err != nil {
		return nil, errors.Join(err, statusError("clReleaseContext", C.driver_release_context(s.context)))
	}
	return s, nil
}

// Close gives queue and context back.
func (s *Session) Close() error {
	return errors.Join(statusError("clReleaseCommandQueue", C.driver_release_queue(s.queue)),
		statusError("clReleaseContext", C.driver_release_context(s.context)))
}

// durationOf is how long a call took, and what is wrong.
func durationOf(function string, t C.timed) (time.Duration, error) {
	return time.Duration(t.ns), statusError(function, t.status)
}

// CreateBuffer calls clCreateBuffer with CL_MEM_READ_WRITE, and says how long that took.
func (s *Session) CreateBuffer(size uint64) (Mem, time.Duration, error) {
	t := C.driver_create(s.context, C.CL_MEM_READ_WRITE, C.size_t(size))
	d, err := durationOf("clCreateBuffer", t)
	return Mem{C.cl_mem(t.object)}, d, err
}

// CreateSubBuffer calls clCreateSubBuffer; origin is a multiple of the device's MemBaseAddrAlign. Both are bytes.
func (m Mem) CreateSubBuffer(origin, size uint64) (Mem, time.Duration, error) {
	t := C.driver_create_part(m.id, C.CL_MEM_READ_WRITE, C.size_t(origin), C.size_t(size))
	d, err := durationOf("clCreateSubBuffer", t)
	return Mem{C.cl_mem(t.object)}, d, err
}

// ReleaseMemObject calls clReleaseMemObject.
func (m Mem) ReleaseMemObject() (time.Duration, error) {
	return durationOf("clReleaseMemObject", C.driver_release(m.id))
}

// FillBuffer writes a pattern of four bytes into the first size bytes, a multiple of four, and waits until it is done.
func (s *Session) FillBuffer(m Mem, pattern uint32, size uint64) (time.Duration, error) {
	return durationOf("clEnqueueFillBuffer", C.driver_fill(s.queue, m.id, C.uint32_t(pattern), C.size_t(size)))
}

// WriteBuffer writes four bytes at an offset in bytes and waits until it is done.
func (s *Session) WriteBuffer(m Mem, offset uint64, value uint32) (time.Duration, error) {
	return durationOf("clEnqueueWriteBuffer", C.driver_write(s.queue, m.id, C.size_t(offset), C.uint32_t(value)))
}
