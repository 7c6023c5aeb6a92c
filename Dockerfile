# tensorpack with TensorFlow for the CPU, and the DQN example on Atari games:
#
#   docker build -t tensorpack .
#   mkdir -p train_log
#   docker run --rm -it -v "$PWD/train_log:/app/train_log" -u "$(id -u)" tensorpack
#   docker run --rm -it tensorpack tensorpack doctor
#
# Without a command it does what `make dqn` does. A GPU needs the extra `gpu` instead of `tf`, and
# `docker run --gpus all`.
FROM python:3.11-slim

ENV PYTHONUNBUFFERED=1 PIP_NO_CACHE_DIR=1 PIP_DISABLE_PIP_VERSION_CHECK=1 HOME=/app
WORKDIR /app
COPY . /src
RUN pip install "/src[tf,atari]" && mkdir -m 777 train_log && chmod 777 /app \
    && cp -r /src/examples . && rm -rf /src
USER 1000
CMD ["python", "examples/DeepQNetwork/DQN.py", "--rom", "breakout.bin", "--resume", "auto"]
