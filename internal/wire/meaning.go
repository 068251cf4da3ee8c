package wire

import (
	"slices"
	"strconv"
	"strings"
)

// StatusNameAndNumber names a status with its number.
func StatusNameAndNumber(status int32) string {
	number, name := StatusNumber(status), StatusName(status)
	if name == "" || name == number {
		return number
	}
	return name + " (" + number + ")"
}

// StatusNumber writes a status as a number, or NULL.
func StatusNumber(status int32) string {
	if status == ReturnedNULL {
		return StatusName(status)
	}
	return strconv.Itoa(int(status))
}

// WordsForCreated returns how sentences name what a create made. Events have the words of String.
func (v Memory) WordsForCreated() string {
	if v == MemorySubBuffer {
		return "sub-buffer"
	}
	return v.String()
}

// WhyCreateRefused returns why a create returns a status, in the words of the OpenCL standard (OpenCL 3.0 §5, and the extensions that add
// creates); empty: the standard has no such status there.
func WhyCreateRefused(m Memory, status int32) string {
	if int(m) < len(refusedCreates) {
		if why := refusedCreates[m][status]; why != "" {
			return why
		}
	}
	if IsUnlistedStatus(m, status) {
		return ""
	}
	return refusedAnywhere[status]
}

// IsUnlistedStatus reports whether the standard does not list a status for a create: an image of a memory object that is not valid has
// CL_INVALID_IMAGE_DESCRIPTOR.
func IsUnlistedStatus(m Memory, status int32) bool {
	return m == MemoryImage && status == InvalidMemObject
}

// WhyCallRefused returns the same of another OpenCL function.
func WhyCallRefused(function string, status int32) string {
	if status == InvalidOperation {
		for _, c := range hostAccess {
			if strings.HasPrefix(function, c.begin) {
				return c.why
			}
		}
	}
	for _, family := range families {
		if slices.ContainsFunc(family.begin, func(begin string) bool { return strings.HasPrefix(function, begin) }) {
			if why := family.why[status]; why != "" {
				return why
			}
			break
		}
	}
	return refusedAnywhere[status]
}

type reasons map[int32]string

const (
	tooLarge    = "the size is 0, or larger than CL_DEVICE_MAX_MEM_ALLOC_SIZE of every device"
	hostPointer = "CL_MEM_USE_HOST_PTR or CL_MEM_COPY_HOST_PTR is set and host_ptr is NULL, or neither is set and host_ptr is not NULL"
	badFlags    = "the flags are not valid, or exclude each other"
	badDevice   = "the device is not valid, or the context does not have it"
	badValue    = "an argument is not valid"
)

var refusedAnywhere = reasons{
	MemObjectAllocationFailure: "no memory could be had for a memory object",
	OutOfResources:             "the device lacks resources",
	OutOfHostMemory:            "the host lacks memory",
	InvalidValue:               badValue,
	-33:                        badDevice,
	-34:                        "the context is not valid, or the objects belong to different contexts",
	-36:                        "the queue is not valid",
	-38:                        "a memory object is not valid: no create returned it, or its last reference was released",
	-44:                        "the program is not valid",
	-48:                        "the kernel is not valid",
	-57:                        "the wait list and its length do not fit together, or an event in it is not valid",
	-58:                        "an event is not valid",
}

var usm = reasons{
	InvalidValue: "the alignment is no power of two that the device has, or a property is not valid", InvalidBufferSize: tooLarge,
	-59: "no device of the context has such memory", -64: "a property is not known, or is given twice",
}

var refusedCreates = [...]reasons{
	MemoryBuffer: {
		InvalidValue: badFlags, -34: "the context is not valid", -37: hostPointer, InvalidBufferSize: tooLarge, -64: "a property is not known, or is given twice",
	},
	MemorySubBuffer: {
		-13:          "the offset is no multiple of CL_DEVICE_MEM_BASE_ADDR_ALIGN of any device",
		InvalidValue: "the region lies beyond the end of the buffer, or its flags do not fit those of the buffer",
		-38:          "the buffer is not valid, or is a sub-buffer itself", InvalidBufferSize: "the size is 0",
	},
	MemoryImage: {
		-10: "no device has the format for these flags", InvalidValue: badFlags, -34: "the context is not valid", -37: hostPointer,
		-39:              "the format is not valid",
		InvalidImageSize: "the image is larger than every device allows", InvalidOperation: "no device of the context has images",
		-64: "a property is not known, or is given twice", -65: "the description is not valid",
	},
	MemoryPipe: {
		InvalidValue: "the flags are not valid, or there are properties", -34: "the context is not valid",
		-69: "a packet has no bytes or more than CL_DEVICE_PIPE_MAX_PACKET_SIZE, or there is no packet", -59: "no device of the context has pipes",
	},
	MemorySVM: { // clSVMAlloc returns no status: see CreateStatus
		MemObjectAllocationFailure: "clSVMAlloc has no codes; as size and alignment are valid, the driver probably lacks memory",
		InvalidBufferSize:          "clSVMAlloc has no codes; the size is larger than CL_DEVICE_MAX_MEM_ALLOC_SIZE",
		InvalidValue: "clSVMAlloc has no codes; the size is 0 or larger than CL_DEVICE_MAX_MEM_ALLOC_SIZE, " +
			"or the flags or the alignment are not those of the device",
	},
	MemoryUSMHost: usm, MemoryUSMDevice: usm, MemoryUSMShared: usm,
	MemoryExternal: {
		InvalidValue: badFlags, -34: "the context was not made for sharing", -39: "the format has no equal in OpenCL",
		-60: "the object of the other API is not valid, or has no storage", -62: "there is no such mipmap level",
	},
}

// hostAccess is where commands between buffers and the host return CL_INVALID_OPERATION: only images depend on what the device can do.
var hostAccess = []struct{ begin, why string }{
	{"clEnqueueWriteBuffer", "the buffer was made with CL_MEM_HOST_READ_ONLY or CL_MEM_HOST_NO_ACCESS"},
	{"clEnqueueReadBuffer", "the buffer was made with CL_MEM_HOST_WRITE_ONLY or CL_MEM_HOST_NO_ACCESS"},
	{"clEnqueueMapBuffer", "the buffer was made without the access for the host that the map wants, or bytes would be mapped for writing twice"},
}

// families are functions with the same statuses.
var families = []struct {
	begin []string
	why   reasons
}{
	{[]string{"clCreateKernel"}, reasons{
		-45: "the program was not built for any device", -46: "the program has no kernel of this name", InvalidValue: "the name is NULL",
		-47: "the kernel is not declared alike for all devices",
	}},
	{[]string{"clBuildProgram", "clCompileProgram", "clLinkProgram"}, reasons{
		-3: "there is no compiler", -11: "the build failed: CL_PROGRAM_BUILD_LOG says why", -15: "the compiler refused the source: CL_PROGRAM_BUILD_LOG says why",
		-17: "the linker refused the programs: CL_PROGRAM_BUILD_LOG says why", -42: "there is no valid binary for a device",
		-43: "the build options are not valid", -66: "the compiler options are not valid", -67: "the linker options are not valid",
		-59: "the program has kernels, is being built, or has neither source nor code",
	}},
	{[]string{"clCreateProgram"}, reasons{
		-42: "a binary is not valid for its device", InvalidValue: "there is no source, code or name, or a part of it is NULL",
		-59: "no device of the context takes this code",
	}},
	{[]string{"clCreateCommandQueue"}, reasons{
		InvalidValue: "the properties are not valid", -35: "the device does not support these properties", -34: "the context is not valid",
	}},
	{[]string{"clCreateContext"}, reasons{
		-1: "no device of this type was found", -2: "a device is not available at present", -31: "the type of device is not valid",
		-32: "the platform is not valid, or none is named and none is the default", -64: "a property is not known, or is given twice",
	}},
	{[]string{"clGetPlatformIDs"}, reasons{-1001: "no platform was found"}},
	{[]string{"clGetDeviceIDs"}, reasons{
		-1: "no device of this type was found", -31: "the type of device is not valid", -32: "the platform is not valid",
	}},
	{[]string{"clSetKernelArg"}, reasons{
		-49: "the kernel has no argument of this number", -50: "the value does not fit the argument", -51: "the size is not that of the argument's type",
	}},
	{[]string{"clEnqueueNDRangeKernel", "clEnqueueTask"}, reasons{
		-45: "the program was not built for the device of the queue", -52: "an argument of the kernel was not set", -53: "the number of dimensions is not 1, 2 or 3",
		-54: "the size of a work-group is not one that the kernel and the device allow", -55: "a dimension of the work-group is larger than the device allows",
		-56: "the global offset is too large", -63: "the global size is 0 or too large", -13: "a sub-buffer is not aligned as the device needs it",
	}},
	{[]string{"clEnqueue", "clWaitForEvents"}, reasons{
		-12: "the object cannot be mapped into the host's memory", -13: "a sub-buffer is not aligned as the device needs it",
		-14: "an event that it waits for ended with an error", InvalidValue: "the region lies beyond the end of the object, or a pointer is NULL",
		-59: "the object was made without access for the host, or the device cannot do this", -8: "source and destination overlap",
	}},
}

// deviceTypes are the names of the bits of a cl_device_type.
var deviceTypes = [...]string{"DEFAULT", "CPU", "GPU", "ACCELERATOR", "CUSTOM"}

// DeviceIDsResultText says what clGetDeviceIDs returned for a cl_device_type.
func DeviceIDsResultText(kind uint64, status int32, found uint32) string {
	var names []string
	for i, name := range deviceTypes {
		if kind&(1<<i) != 0 {
			names = append(names, name)
		}
	}
	name := strings.Join(names, "|")
	switch {
	case kind == 0xffffffff:
		name = "ALL"
	case kind == 0 || kind>>len(deviceTypes) != 0:
		name = "0x" + strconv.FormatUint(kind, 16)
	}
	call := "clGetDeviceIDs(" + name + ")"
	switch {
	case status == -1:
		return call + " found no device: " + StatusNameAndNumber(status)
	case status != 0:
		return call + " failed with " + StatusNameAndNumber(status)
	case found == 1:
		return call + " found 1 device"
	}
	return call + " found " + strconv.FormatUint(uint64(found), 10) + " devices"
}
