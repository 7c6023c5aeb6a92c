// Scrolls the sidebar, which has a scroll bar of its own, to the page that is shown.
addEventListener("DOMContentLoaded", () => {
  const box = document.querySelector(".sidebar-scroll");
  const here = document.querySelector(".sidebar-tree .current-page > a");
  if (!box || !here) return;
  const below = here.getBoundingClientRect().bottom - box.getBoundingClientRect().bottom;
  if (below > 0) box.scrollTop += below + box.clientHeight / 2;
});
