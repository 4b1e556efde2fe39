/** Price of `count` items at `each` cents, with 10 % off from 10 items on. */
export function priceOf(count, each) {
  const full = count * each;
  return count > 10 ? full * 0.9 : full;
}
