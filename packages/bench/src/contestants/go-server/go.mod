module heddle.example/bench

go 1.24
