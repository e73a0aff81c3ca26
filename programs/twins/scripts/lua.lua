-- Small programs, one after the other: arithmetic, tables, strings, closures and objects.
local seed = 42
local function random(n)
    seed = (seed * 1103515245 + 12345) % 2147483648
    return seed // 65536 % n + 1
end

local function sieve(n)
    local composite, count = {}, 0
    for i = 2, n do
        if not composite[i] then
            count = count + 1
            for j = i * i, n, i do composite[j] = true end
        end
    end
    return count
end

local function quicksort(t, low, high, less)
    if low >= high then return end
    local pivot, i, j = t[(low + high) // 2], low, high
    while i <= j do
        while less(t[i], pivot) do i = i + 1 end
        while less(pivot, t[j]) do j = j - 1 end
        if i <= j then
            t[i], t[j] = t[j], t[i]
            i, j = i + 1, j - 1
        end
    end
    quicksort(t, low, j, less)
    quicksort(t, i, high, less)
end

local function fannkuch(n)
    local p, q, s, sign, most, sum = {}, {}, {}, 1, 0, 0
    for i = 1, n do p[i], q[i], s[i] = i, i, i end
    while true do
        local first = p[1]
        if first ~= 1 then
            for i = 2, n do q[i] = p[i] end
            local flips = 1
            while true do
                local other = q[first]
                if other == 1 then break end
                q[first] = first
                if first >= 4 then
                    local i, j = 2, first - 1
                    repeat
                        q[i], q[j] = q[j], q[i]
                        i, j = i + 1, j - 1
                    until i >= j
                end
                first, flips = other, flips + 1
            end
            sum = sum + sign * flips
            if flips > most then most = flips end
        end
        if sign == 1 then
            p[1], p[2] = p[2], p[1]
            sign = -1
        else
            p[2], p[3] = p[3], p[2]
            sign = 1
            for i = 3, n do
                if s[i] ~= 1 then
                    s[i] = s[i] - 1
                    break
                end
                if i == n then return sum, most end
                s[i] = i
                local moved = p[1]
                for j = 1, i do p[j] = p[j + 1] end
                p[i + 1] = moved
            end
        end
    end
end

local Account = {}
Account.__index = Account
function Account.new(balance) return setmetatable({balance = balance, moves = 0}, Account) end
function Account:move(other, sum)
    self.balance, other.balance = self.balance - sum, other.balance + sum
    self.moves = self.moves + 1
end

local function bank(rounds)
    local accounts = {}
    for i = 1, 50 do accounts[i] = Account.new(i * 100) end
    for _ = 1, rounds do accounts[random(50)]:move(accounts[random(50)], random(20)) end
    local sum = 0
    for i, account in ipairs(accounts) do sum = sum + account.balance * i + account.moves end
    return sum
end

local function words(rounds)
    local counts, names = {}, {}
    for i = 1, rounds do
        local word = string.format("%s-%d", string.rep(string.char(96 + random(5)), random(3)), i % 17)
        if not counts[word] then names[#names + 1] = word end
        counts[word] = (counts[word] or 0) + #word
    end
    table.sort(names)
    local text = {}
    for i, name in ipairs(names) do text[i] = name:upper() .. counts[name] end
    return #table.concat(text, ","):gsub("A+", "<%0>")
end

local function waves(n)
    local sum, x = 0.0, 0.5
    for i = 1, n do
        x = 3.9 * x * (1 - x)
        sum = sum + x * i % 7.0 - x / (i + 1)
    end
    return sum
end

local function compose(n)
    local f = function(x) return x end
    for i = 1, 40 do
        local g, k = f, i
        f = function(x) return g(x) + k end
    end
    local sum = 0
    for i = 1, n do sum = sum + f(i) end
    return sum
end

for round = 1, amount do
    local t = {}
    for i = 1, 4000 do t[i] = random(100000) end
    quicksort(t, 1, #t, function(a, b) return a < b end)
    local flips, most = fannkuch(7)
    local line = {sieve(20000), t[1], t[2000], flips, most, bank(20000), words(3000), compose(1000)}
    print(round, table.concat(line, " "), string.format("%.6f", waves(30000)))
end
