(()=>{function e(n){let{name:o}=n;return`Hello, ${o}!`}var r=[{name:"Ann"},{name:"Ben"}],t=r.map(n=>e(n)??"nobody").join(`
`);console.log(t);})();
//# sourceMappingURL=out.js.map
