// Package browser tests the pictures of package chart and of the documents as readers see
// them: in Chromium and by librsvg. It is a module of its own, so that tests of the library
// need neither. "make pictures" installs both and runs it.
package browser
