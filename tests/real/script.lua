print(_VERSION, #arg, arg[1], io.read("a"))
local file = assert(io.open("/data/out.txt", "w"))
file:write("one\n", 2, "\n")
file:close()
for line in io.lines("/data/out.txt") do print(line:upper()) end
print(os.rename("/data/out.txt", "/data/moved.txt"), os.remove("/data/moved.txt"))
print(select(2, io.open("/data/none")), select(2, io.open("/etc/passwd")))
local squares = setmetatable({}, { __index = function(_, k) return k * k end })
local sum = 0
for i = 1, 1000 do sum = sum + squares[i] end
print(sum, string.format("%5.2f %q", math.pi, "a\nb"), ("x"):rep(3, "-"))
print(string.find("hello world", "(o) (w)"))
local words = {}
for word in ("the quick brown fox"):gmatch("%a+") do words[#words + 1] = word end
table.sort(words, function(a, b) return #a < #b or #a == #b and a < b end)
print(table.concat(words, ","), 7 // 2, 7.5 % 2, 1 << 40)
error("the end")
