//go:build !goexperiment.jsonv2

package storable

import "encoding/json"

// toJSON returns the JSON of a value. It writes bytes that are not UTF-8 as an escape that it
// uses for nothing else, so that [Check] can refuse them.
func toJSON(v any) ([]byte, error) { return json.Marshal(v) }
