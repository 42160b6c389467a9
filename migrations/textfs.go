package migrations

import (
	"errors"
	"io"
	"io/fs"
	"maps"
	"slices"
	"strings"
	"time"
)

// textFS is a file system in memory with one directory: the text of each file, by
// its name.
type textFS map[string]string

func (f textFS) Open(name string) (fs.File, error) {
	if !fs.ValidPath(name) {
		return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrInvalid}
	}
	if name == "." {
		return &openDir{left: f.entries()}, nil
	}
	text, ok := f[name]
	if !ok {
		return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrNotExist}
	}
	return openFile{strings.NewReader(text), info{name, len(text)}}, nil
}

// entries returns the files sorted by name.
func (f textFS) entries() []fs.DirEntry {
	var list []fs.DirEntry
	for _, name := range slices.Sorted(maps.Keys(f)) {
		list = append(list, fs.FileInfoToDirEntry(info{name, len(f[name])}))
	}
	return list
}

// openFile is an open file of a textFS.
type openFile struct {
	io.ReadSeeker
	info info
}

func (o openFile) Stat() (fs.FileInfo, error) { return o.info, nil }
func (o openFile) Close() error               { return nil }

// openDir is the open directory of a textFS.
type openDir struct{ left []fs.DirEntry }

func (o *openDir) Stat() (fs.FileInfo, error) { return info{name: "."}, nil }
func (o *openDir) Close() error               { return nil }

func (o *openDir) Read([]byte) (int, error) {
	return 0, &fs.PathError{Op: "read", Path: ".", Err: errors.New("is a directory")}
}

func (o *openDir) ReadDir(n int) ([]fs.DirEntry, error) {
	if n <= 0 {
		n = len(o.left)
	} else if len(o.left) == 0 {
		return nil, io.EOF
	}
	list := o.left[:min(n, len(o.left))]
	o.left = o.left[len(list):]
	return list, nil
}

// info describes a file, or the directory, whose name is ".".
type info struct {
	name string
	size int // in bytes
}

func (i info) Name() string       { return i.name }
func (i info) Size() int64        { return int64(i.size) }
func (i info) IsDir() bool        { return i.name == "." }
func (i info) ModTime() time.Time { return time.Time{} }
func (i info) Sys() any           { return nil }

func (i info) Mode() fs.FileMode {
	if i.IsDir() {
		return fs.ModeDir | 0o555
	}
	return 0o444
}
