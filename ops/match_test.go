package ops

import "testing"

// TestMatchLeavesOutSpace outside of strings, on both sides, and nowhere else.
func TestMatchLeavesOutSpace(t *testing.T) {
	t.Parallel()
	payload := []byte(`{"order": 42, "to": "new york, ny", "list": [1, 2, null], "said": "a \"b c\" [d, e]", "x":"f"}`)
	for text, want := range map[string]bool{
		`"order": 42`: true, `"order":42`: true, `"order" : 42`: true, " 42 ,": true, "[1, 2": true, "[ 1,2": true, "1,\n\t2": true,
		`york, ny", "list": [`: true, "york, ny": true, "york,ny": false, "newyork": false, `"new  york`: false, "4 2": false, "1 2": false,
		`b c\" [d, e]", "x": "f"`: true, `"b c\" [d`: true, "[d, e]": true, "[d,e]": false, `"order": 43`: false, "  ": false, "]  ,": true,
	} {
		if got := matcher(text)(payload); got != want {
			t.Errorf("%q matches: %v, want %v", text, got, want)
		}
	}
}
