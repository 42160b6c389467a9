package cause_test

import (
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/falldue/falldue/internal/cause"
)

func TestCausesLeaveOutWhatDiffers(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"dial tcp 10.0.0.7:5432: connection refused":        "dial tcp ….….….…:…: connection refused",
		`no order "4711-a" of customer 8f14e45f`:            `no order … of customer …`,
		"unexpected status 503 Service Unavailable":         "unexpected status 503 Service Unavailable",
		"can't parse 'x y' since it isn't `z`":              "can't parse … since it isn't …",
		"task 550e8400-e29b-41d4-a716-446655440000 is gone": "task … is gone",
		"an open \" quote":                                  "an open \" quote",
		"  first line 1\nsecond line":                       "first line …",
		"größe 7 überschritten":                             "größe … überschritten",
		"no card card_8f14e45f of cus_1x9":                  "no card … of …",
		"relay: 550 no such user, task 550":                 "relay: 550 no such user, task …",
		"":                                                  "",
	} {
		if got := cause.Of(text); got != want {
			t.Errorf("Of(%q) = %q, want %q", text, got, want)
		}
	}
	if long := cause.Of(strings.Repeat("é ", 10000)); utf8.RuneCountInString(long) > 201 || !utf8.ValidString(long) {
		t.Errorf("a long text has a cause of %d bytes", len(long))
	}
}
