package session

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"os"
)

// spoolMemory is how many bytes of output are kept in memory before the rest goes to a file.
const spoolMemory = 1 << 20

// spool keeps chunks of output with their streams, in order, however many: in memory first, then in an unlinked
// file, and in memory again should that file's disk be full. Its owner serialises the calls.
type spool struct {
	early []byte
	file  *os.File
	late  []byte
	size  int64 // of file
}

const spoolHead = 5 // stream, then length in four bytes

// appendChunk appends a chunk; it is copied.
func (s *spool) appendChunk(stream int, chunk []byte) {
	var head [spoolHead]byte
	head[0] = byte(stream)
	binary.LittleEndian.PutUint32(head[1:], uint32(len(chunk)))
	switch {
	case s.late != nil:
		s.late = append(append(s.late, head[:]...), chunk...)
	case s.file == nil && len(s.early)+len(chunk) < spoolMemory:
		s.early = append(append(s.early, head[:]...), chunk...)
	default:
		s.addToFile(head[:], chunk)
	}
}

func (s *spool) addToFile(head, chunk []byte) {
	if s.file == nil {
		s.file = newUnlinkedFile()
	}
	if s.file != nil {
		data := append(append(make([]byte, 0, len(head)+len(chunk)), head...), chunk...)
		if _, err := s.file.WriteAt(data, s.size); err == nil {
			s.size += int64(len(data))
			return
		}
	}
	s.late = append(append(s.late, head...), chunk...)
}

// newUnlinkedFile returns a file that vanishes with us, nil if there can be none.
func newUnlinkedFile() *os.File {
	f, err := os.CreateTemp("", "gpumemtop-output-*")
	if err != nil {
		return nil
	}
	if os.Remove(f.Name()) != nil {
		_ = f.Close()
		return nil
	}
	return f
}

// writeToStreams writes everything to the right streams, in order.
func (s *spool) writeToStreams(to [2]io.Writer) error {
	parts := []io.Reader{bytes.NewReader(s.early)}
	if s.file != nil {
		parts = append(parts, io.NewSectionReader(s.file, 0, s.size))
	}
	return writeChunksTo(io.MultiReader(append(parts, bytes.NewReader(s.late))...), to)
}

func writeChunksTo(r io.Reader, to [2]io.Writer) error {
	var failed error
	var head [spoolHead]byte
	for {
		if _, err := io.ReadFull(r, head[:]); errors.Is(err, io.EOF) {
			return failed
		} else if err != nil {
			return errors.Join(failed, err)
		}
		length := int64(binary.LittleEndian.Uint32(head[1:]))
		chunk := make([]byte, length)
		if _, err := io.ReadFull(r, chunk); err != nil {
			return errors.Join(failed, err)
		}
		// A stream that is closed must not keep the other one from its output.
		if _, err := to[head[0]&1].Write(chunk); err != nil && failed == nil {
			failed = err
		}
	}
}

// close releases memory and file.
func (s *spool) close() {
	if s.file != nil {
		_ = s.file.Close()
	}
	*s = spool{}
}
