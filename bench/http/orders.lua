-- Orders under keys: fresh ones, or the same 64 in turn. usage: wrk -s orders.lua URL -- fresh|replay
local fresh, run, at = true, 0, 0
init = function(args)
  fresh = args[1] == "fresh"
  run = os.time()
end
request = function()
  at = at + 1
  local key = fresh and run .. "-" .. at or "again-" .. at % 64
  return wrk.format("POST", nil, { ["Idempotency-Key"] = key }, '{"item":"bolt","count":3}')
end
