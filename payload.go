package falldue

import (
	"fmt"

	"github.com/falldue/falldue/internal/storable"
)

// toStore returns the JSON of a payload or a result, of most bytes at most.
func toStore(what string, v any, most int) ([]byte, error) {
	data, err := storable.JSON(v)
	if err == nil && len(data) > most {
		err = fmt.Errorf("%d bytes; allowed are %d (Config.MaxPayload)", len(data), most)
	}
	if err != nil {
		return nil, invalid("%s: %w", what, err)
	}
	return data, nil
}
