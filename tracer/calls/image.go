package calls

import (
	"encoding/binary"

	"codeberg.org/gpumemtop/gpumemtop/internal/wire"
)

// Types of images. (API specification, table of memory object types.)
const (
	image2D      = 0x10F1 // CL_MEM_OBJECT_IMAGE2D
	image3D      = 0x10F2
	image2DArray = 0x10F3
	image1D      = 0x10F4
	image1DArray = 0x10F5
	image1DBytes = 0x10F6 // CL_MEM_OBJECT_IMAGE1D_BUFFER
)

// description is the part of a cl_image_desc that determines its size. A pitch of 0 means tightly packed.
type description struct {
	kind                        uint32
	width, height, depth, array uint64
	row, slice                  uint64 // bytes
	memory                      uint64 // handle of the memory that it shares
}

// parseImageDesc reads a cl_image_desc. Without a copy all fields are zero.
func parseImageDesc(copied []byte) (d description) {
	if copied == nil {
		return d
	}
	return description{
		kind: binary.LittleEndian.Uint32(copied), width: numberAt(copied, 1), height: numberAt(copied, 2), depth: numberAt(copied, 3),
		array: numberAt(copied, 4), row: numberAt(copied, 5), slice: numberAt(copied, 6), memory: numberAt(copied, 8),
	}
}

// imageBytes returns the size of an image as PoCL reports it for CL_MEM_SIZE; other drivers may pad.
func (d *description) imageBytes(element uint64) uint64 {
	row := d.row
	if row == 0 {
		row = mulSaturating(d.width, element)
	}
	slice := d.slice
	switch d.kind {
	case image1D, image1DBytes:
		return row
	case image2D:
		return mulSaturating(row, d.height)
	case image1DArray:
		if slice == 0 {
			slice = row
		}
		return mulSaturating(slice, d.array)
	case image2DArray:
		if slice == 0 {
			slice = mulSaturating(row, d.height)
		}
		return mulSaturating(slice, d.array)
	case image3D:
		if slice == 0 {
			slice = mulSaturating(row, d.height)
		}
		return mulSaturating(slice, d.depth)
	default:
		return 0
	}
}

// elementSize returns the bytes of one element of a cl_image_format, 0 if unknown. (API specification, image format
// descriptor; extensions cl_khr_depth_images and cl_khr_gl_depth_images.)
func elementSize(copied []byte) uint64 {
	if copied == nil {
		return 0
	}
	order, channel := binary.LittleEndian.Uint32(copied), binary.LittleEndian.Uint32(copied[4:])
	switch channel {
	case 0x10D0, 0x10D2, 0x10D7, 0x10DA: // SNORM_INT8, UNORM_INT8, SIGNED_INT8, UNSIGNED_INT8
		return channelCount(order)
	case 0x10D1, 0x10D3, 0x10D8, 0x10DB, 0x10DD: // the same with INT16, HALF_FLOAT
		return 2 * channelCount(order)
	case 0x10D9, 0x10DC, 0x10DE: // SIGNED_INT32, UNSIGNED_INT32, FLOAT
		return 4 * channelCount(order)
	case 0x10D4, 0x10D5: // UNORM_SHORT_565, UNORM_SHORT_555
		return 2
	case 0x10D6, 0x10DF, 0x10E0: // UNORM_INT_101010, UNORM_INT24 with 8 bits of stencil, UNORM_INT_101010_2
		return 4
	default:
		return 0
	}
}

func channelCount(order uint32) uint64 {
	switch order {
	case 0x10B0, 0x10B1, 0x10B8, 0x10B9, 0x10BA, 0x10BD: // R, A, INTENSITY, LUMINANCE, Rx, DEPTH
		return 1
	case 0x10B2, 0x10B3, 0x10BB, 0x10BE: // RG, RA, RGx, DEPTH_STENCIL: stencil takes as much as depth
		return 2
	case 0x10B4, 0x10BC, 0x10BF: // RGB, RGBx, sRGB
		return 3
	default:
		return 4
	}
}

func (cr *creates) handleImage(s *wire.Sample) { cr.addImageCreation(s, 1, s.Error) }

// handleImageWithProperties: the error is the seventh argument.
func (cr *creates) handleImageWithProperties(s *wire.Sample) { cr.addImageCreation(s, 2, 0) }

func (cr *creates) addImageCreation(s *wire.Sample, flags int, err int32) {
	c := creation{
		kind: wire.MemoryImage, context: s.Argument[0], flags: s.Argument[flags], element: elementSize(s.CopiedArgument(0)), status: err,
	}
	desc := parseImageDesc(s.CopiedArgument(1))
	c.share, c.least = desc.memory, desc.imageBytes(c.element)
	if s.Result != 0 {
		c.size = c.least
	}
	cr.noteCreatedObject(s, &c)
}

func (cr *creates) handleImage2D(s *wire.Sample) {
	desc := description{kind: image2D, width: s.Argument[3], height: s.Argument[4], row: s.Argument[5]}
	cr.addOldImageCreation(s, &desc)
}

// handleImage3D: the pitches of the host memory are later arguments.
func (cr *creates) handleImage3D(s *wire.Sample) {
	desc := description{kind: image3D, width: s.Argument[3], height: s.Argument[4], depth: s.Argument[5]}
	cr.addOldImageCreation(s, &desc)
}

func (cr *creates) addOldImageCreation(s *wire.Sample, desc *description) {
	c := creation{kind: wire.MemoryImage, context: s.Argument[0], flags: s.Argument[1], element: elementSize(s.CopiedArgument(0))}
	if s.Result != 0 {
		c.size = desc.imageBytes(c.element)
	}
	cr.noteCreatedObject(s, &c)
}
