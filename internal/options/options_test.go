package options

import "testing"

// TestOne: options are passed once at most.
func TestOne(t *testing.T) {
	t.Parallel()
	type ListOptions struct{ Limit int }
	if o, err := One[ListOptions](nil); o.Limit != 0 || err != nil {
		t.Errorf("no options are %v, error %v", o, err)
	}
	if o, err := One([]ListOptions{{Limit: 3}}); o.Limit != 3 || err != nil {
		t.Errorf("one is %v, error %v", o, err)
	}
	if _, err := One(make([]ListOptions, 2)); err == nil || err.Error() != "2 ListOptions: pass at most one" {
		t.Errorf("two give the error %v", err)
	}
}
