package target

// Mapping is one line of /proc/PID/maps: a range of addresses and the file that lies there.
type Mapping struct {
	Start, End uint64 // addresses; End is the first one behind it
	Offset     uint64 // of Start in the file
	Exec       bool   // code can run from it
	Device     uint64 // as in st_dev of stat(2); on btrfs and overlayfs stat may tell another one
	Inode      uint64 // 0 where there is no file
	Path       string // as the process sees it, without " (deleted)"; "" or like "[stack]" where there is no file
}
