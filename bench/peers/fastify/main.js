// fastify peer of bench/http. usage: node main.js PORT FILE
// Under /limited a rate limiter, in memory, whose limit is never reached.
const fs = require('fs');
const fastify = require('fastify');

if (process.argv.length !== 4) {
  console.error('usage: node main.js PORT FILE');
  process.exit(2);
}
const big = fs.readFileSync(process.argv[3], 'utf8');
const app = fastify({ logger: false, trustProxy: true });
const schema = { response: { 200: { type: 'object', properties: { hello: { type: 'string' } } } } };
const hello = async (request) => ({ hello: request.params.name });
app.get('/hello/:name', { schema }, hello);
app.get('/big', async (request, reply) => {
  reply.type('application/json');
  return big;
});
app.register(async (limited) => {
  await limited.register(require('@fastify/rate-limit'), { max: 1e9, timeWindow: '1 minute' });
  limited.get('/limited/:name', { schema }, hello);
});
app.listen({ port: Number(process.argv[2]), host: '127.0.0.1' }).catch((error) => {
  console.error(error.message);
  process.exit(1);
});
