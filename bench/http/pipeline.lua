-- DEPTH requests in every write. usage: wrk -s pipeline.lua URL -- DEPTH
init = function(args)
  local all = {}
  for i = 1, tonumber(args[1]) do all[i] = wrk.format("GET", nil) end
  requests = table.concat(all)
end
request = function() return requests end
