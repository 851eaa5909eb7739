-- The requests of 64 clients in turn, as a proxy in front names them.
local requests, at = {}, 0
init = function()
  for i = 1, 64 do requests[i] = wrk.format("GET", nil, { ["X-Forwarded-For"] = "192.0.2." .. i }) end
end
request = function()
  at = at % 64 + 1
  return requests[at]
end
