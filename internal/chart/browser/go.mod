module github.com/falldue/falldue/internal/chart/browser

go 1.26.0

replace github.com/falldue/falldue => ../../..

require github.com/falldue/falldue v0.0.0
