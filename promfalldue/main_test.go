package promfalldue_test

import (
	"testing"

	"github.com/falldue/falldue/internal/testdb"
)

func TestMain(m *testing.M) { testdb.Main(m) }
