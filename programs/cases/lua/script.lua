-- Tables, closures, strings, sorting and floating point.
local seed = 42
local function random(below) seed = (seed * 1103515245 + 12345) & 0x7fffffff; return seed % below end
local function tree(depth) if depth == 0 then return {} end return { tree(depth - 1), tree(depth - 1) } end
local function count(node) if not node[1] then return 1 end return 1 + count(node[1]) + count(node[2]) end
local checksum = 0
for round = 1, $N do
  local nodes = count(tree(8))
  local words = {}
  for i = 1, 250 do words[i] = string.format("%05x", random(1 << 20)) end
  table.sort(words, function(a, b) return a:reverse() < b:reverse() end)
  local text, vowels = table.concat(words, " "), 0
  for letter in text:gmatch("[ae]") do vowels = vowels + letter:byte() end
  local sum = 0.0
  for i = 1, 2500 do sum = sum + math.sin(i) * math.sqrt(i) end
  checksum = (checksum * 31 + nodes + vowels + math.floor(sum)) % 1000000007
end
print($N .. " rounds: " .. checksum)
