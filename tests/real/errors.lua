-- Errors in every position from which Lua throws: functions, metamethods, iterators, coroutines, the compiler, the C library.
print(arg[1], arg[2])

local function show(name, ...)
  local ok, message = pcall(...)
  print(string.format("%-20s %s %s", name, ok, type(message) == "table" and "table " .. tostring(message.code) or tostring(message)))
end

show("error", error, "plain")
show("error with level", function() error("here", 1) end)
show("table", error, { code = 7 })
show("nil", error)
show("arithmetic", function() return nil + 1 end)
show("call", function() local t = {}; t.missing() end)
show("index", function() local t; return t.x.y end)
show("compare", function() return {} < {} end)
show("concat", function() return "a" .. {} end)
show("for", function() for i = "a", 2 do end end)
show("string.rep", string.rep)
show("string.format", string.format, "%d", "x")
show("pattern", string.find, "a", "[")
show("table.concat", table.concat, { 1, {}, 3 })
show("sort", table.sort, { 3, 1, "x", 2 })
show("setmetatable", setmetatable, 1, {})
show("overflow", function() local function f() return f() + 1 end return f() end)
show("too much", string.rep, "x", 1 << 31)
show("no error", function() return "fine" end)
print(select("#", pcall(function() return 1, 2, 3 end)))
print(load("x = = 1"))
print(load("goto nowhere"))
print(xpcall(function() error("handled") end, function(m) return "handler: " .. m end))
print(xpcall(function() error("first") end, function() error("second") end))
print(tostring(tostring(setmetatable({}, { __tostring = function() return "object" end }))))
show("__tostring", tostring, setmetatable({}, { __tostring = function() error("in metamethod") end }))
show("__index", function() return setmetatable({}, { __index = function(_, k) error("no " .. k) end }).field end)
show("__gc", function() setmetatable({}, { __gc = function() error("in collector") end }); collectgarbage() end)

-- An error passes through a hundred levels of pcall, each of which throws on.
local function nest(depth)
  if depth == 0 then error("bottom", 0) end
  local ok, message = pcall(nest, depth - 1)
  error(message .. (depth % 10 == 0 and "|" or "."), 0)
end
print(select(2, pcall(nest, 100)))

-- Coroutines: yields are longjmps, too.
local function generate(n)
  return coroutine.wrap(function() for i = 1, n do coroutine.yield(i) end end)
end
local sum = 0
for i in generate(1000) do sum = sum + i end
print(sum)
local broken = coroutine.create(function() coroutine.yield(1); error("in coroutine") end)
print(coroutine.resume(broken))
print(coroutine.resume(broken))
print(coroutine.resume(broken))
print(coroutine.status(broken), coroutine.close(broken))
local through = coroutine.create(function()
  local ok, value = pcall(function() return coroutine.yield("out") + 1 end)
  local ok2, message = pcall(function() coroutine.yield("again"); error("after yield") end)
  return ok, value, ok2, message
end)
print(coroutine.resume(through))
print(coroutine.resume(through, 41))
print(coroutine.resume(through))
show("wrap", function() for _ in coroutine.wrap(function() error("wrapped") end) do end end)

-- To-be-closed variables are closed as an error passes.
do
  local order = {}
  local function closing(name)
    return setmetatable({}, { __close = function(_, e) order[#order + 1] = name .. ":" .. tostring(e) end })
  end
  print(pcall(function()
    local a <close> = closing("a")
    local b <close> = closing("b")
    for i = 1, 3 do
      local c <close> = closing("c" .. i)
      if i == 2 then error("stop", 0) end
    end
  end))
  print(table.concat(order, " "))
end

-- Many errors in a loop.
local caught = 0
for i = 1, 20000 do
  local ok, value = pcall(function(n) if n % 3 == 0 then error(n) elseif n % 3 == 1 then return n end local t = nil; return t[n] end, i)
  if not ok then caught = caught + (math.type(value) == "integer" and value or #value) end
end
print(caught)
error("uncaught")
